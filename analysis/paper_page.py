"""docs/results/paper.md: the published tables beside what they can and cannot say."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import hypot, isinf, isnan
from textwrap import wrap

import paper as p

NAMES = {"grpo": "GRPO", "tic": "TIC", "gmc": "GMC", "a3po": "A-3PO"}
METHODS = ("gmc", "tic", "grpo")


def page() -> str:
    """The whole page."""
    parts = (head, fixed_delay, simulated_async, one_set, averages, group_size, delays, claims, beside_ours)
    return "\n".join(line for part in parts for line in part()).rstrip() + "\n"


def prose(text: str, first: str = "") -> list[str]:
    """A paragraph, or an item of a list, in lines."""
    return [*wrap(text, 115, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False), ""]


def items(*texts: str) -> list[str]:
    """A list."""
    return [*(line for text in texts for line in prose(text, "- ")[:-1]), ""]


def table(header: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """A markdown table; columns after the first are right-aligned."""
    columns = [column.strip() for column in header.split("|")]
    lines = [f"| {' | '.join(map(str, row))} |" for row in (columns, *rows)]
    return [lines[0], "|---|" + "---:|" * (len(columns) - 1), *lines[1:], ""]


def source(name: str) -> list[str]:
    """Title of a published table and where it stands."""
    attrs = p.load(name).attrs
    return prose(f"[{name}.csv](../../analysis/paper/{name}.csv): {attrs['title']}. Article: {attrs['where']}.")


def interval(difference: p.Difference) -> str:
    """Half the interval, at least and at most."""
    wide = f"±{difference.wide:.1f}"
    return f"±{difference.narrow:.1f} to {wide}" if difference.narrow else f"up to {wide}"


def head() -> list[str]:
    """What this is, and the answer."""
    differences = [*p.fixed_delay()["difference"], *p.increments()["second"]]
    count = Counter(difference.reading for difference in differences)
    return [
        "# The paper's tables, recomputed\n",
        *prose(
            "Made by `python analysis/paper.py` from `analysis/paper/*.csv`: the tables of GMC-GRPO (He et al., "
            "2610.01896) as a Chinese article on the paper prints them "
            "(精读：GMC-GRPO——把重要性比从逐条裁剪换成整组收缩, 2 October 2026). The paper itself was not at hand: "
            "what the article leaves out is missing here too. Accuracies are "
            "in points (1/100)."
        ),
        *prose(
            "**The paper has one seed and no error bars, so nothing here ranks its methods.** What the number of "
            "problems alone says, before the unknown variance over seeds is added:"
        ),
        *items(
            "TIC over GRPO in simulated async, 12 to 24 points in every size, is far beyond the noise of the problems.",
            f"GMC over TIC is beyond it in {count[p.BEYOND]} of {count.total()} comparisons. {count[p.INSEPARABLE]} "
            f"are not separable: inside the narrowest interval. {count[p.OPEN]} are open: between the narrowest and "
            "the widest, so that scores by problem, which the authors have, would tell.",
            "With G the number of trajectories grows, and at equal trajectories group sizes compare differently than "
            "at equal updates.",
        ),
        *prose("[statistics.md](../statistics.md) has the intervals to use, and how many seeds a difference needs."),
    ]


def fixed_delay() -> list[str]:
    """The first table, its curves, its errors."""
    rows = [
        (row.D, *(f"{getattr(row, m):.2f}" for m in METHODS), f"{d.points:+.2f}", interval(d), d.reading)
        for row in p.fixed_delay().itertuples()
        for d in [row.difference]
    ]
    return [
        "## Fixed delay\n",
        *source("fixed_delay"),
        *table("D | GMC | TIC | GRPO | GMC - TIC | 95 % | reading", rows),
        *prose(
            "The interval is that of two scores on 500 problems with 16 responses each, unpaired: narrow if all "
            "problems are equally hard, wide if each is always right or always wrong. Scores by problem would give "
            "the paired one, which can be narrower still."
        ),
        *table(
            "method | AUC over D | AUC over log2(1+D) | D_.9 | D_.75 | D_.5 | gain kept at 512", map(curve, METHODS)
        ),
        *prose(
            "D_r is the largest delay that keeps the share r of the accuracy at D=0, by linear interpolation. Gain: "
            f"over the untrained model's {p.BASE}."
        ),
    ]


def curve(method: str) -> tuple[str, ...]:
    """One method's curve as a row."""
    c = p.delay_curve(method)
    kept = ("beyond 512" if isinf(d) else f"{d:.1f}" for d in (c.kept90, c.kept75, c.kept50))
    return (NAMES[method], f"{c.auc:.2f}", f"{c.auc_log:.2f}", *kept, f"{100 * c.gain_kept:.1f} %")


def simulated_async() -> list[str]:
    """The second table, split at TIC."""
    rows = [
        (
            row.model,
            "avg@n" if row.metric == "avg" else row.metric,
            f"{row.first.points:+.2f}",
            f"{row.second.points:+.2f}",
            f"{row.share:.1f} %",
            interval(row.second),
            row.second.reading,
        )
        for row in p.increments().itertuples()
    ]
    scores = p.load("async").pivot(index="method", columns="model").loc[["grpo", "tic", "gmc", "a3po"]]
    cells = [
        [NAMES[m], *(f"{g:.2f} / {a:.2f}" for g, a in zip(s["greedy"], s["avg"], strict=True) if not isnan(g))]
        for m, s in scores.iterrows()
    ]
    cells[-1].append("collapsed")
    return [
        "## Simulated async\n",
        *source("async"),
        *table("greedy / avg@n | 1.7B | 4B | 8B", cells),
        *table("model | metric | TIC - GRPO | GMC - TIC | share of GMC - GRPO | 95 % of GMC - TIC | reading", rows),
        *prose(
            "Wide: unpaired, one answer a problem, problems with one stem as one draw. Narrow, greedy only: paired, "
            f"with the two policies disagreeing on {100 * p.DISCORDANCE:.0f} % of the problems. How many responses "
            "avg@n has here the article does not say. A-3PO is above GMC in both metrics at 1.7B and below in both at "
            "4B; at 8B it collapsed, and so is no stable baseline in the paper's abstract."
        ),
    ]


def one_set() -> list[str]:
    """Greedy differences by set, as problems."""
    eight, four = p.per_set("8B"), p.per_set("4B")
    net, total = int(eight["items"].sum()), sum(p.ROWS.values())
    se, item = p.paired_item_se(net), eight["item_weighted"].sum()
    rest, rounding = p.other_sets("4B")
    rows = [
        (
            *(row.model, row.set, f"{row.difference:+.2f}", f"{row.items:+d} of {p.ROWS[row.set]}"),
            *(f"{row.macro:+.3f}", f"{row.item_weighted:+.3f}", f"{row.least_p:.2g}"),
        )
        for of_model in (eight, four)
        for row in of_model.itertuples()
    ]
    return [
        "## Greedy, one set at a time\n",
        *source("sets"),
        *table("model | set | GMC - TIC | problems | in the macro | item-weighted | smallest p", rows),
        *prose(
            "Smallest p: exact McNemar if the two policies disagreed on no other problem of the set; any further "
            "disagreement raises it."
        ),
        *items(
            f"**8B**: macro {eight['macro'].sum():+.3f} (printed +0.11), item-weighted {net:+d}/{total} = {item:+.2f}. "
            f"With {100 * p.DISCORDANCE:.0f} % of the problems discordant its standard error is {se:.2f}, z = "
            f"{item / se:.2f}.",
            f"**4B**: two problems of AMC23 are {four['macro'].sum():+.3f} of the macro's -0.83, and "
            f"{four['item_weighted'].sum():+.3f} item-weighted. The other five differences sum to {rest:+.2f} "
            f"(±{rounding:.2f} by rounding) and are not printed one by one, so that the item-weighted difference "
            "cannot be worked out.",
        ),
    ]


def averages() -> list[str]:
    """What the two averages weigh, and their errors."""
    total = sum(p.ROWS.values())
    rows = [
        (
            name,
            n,
            f"{1 / 6:.3f}",
            f"{n / total:.3f}",
            f"{100 * p.variance_share(name):.0f} %",
            f"{p.EFFECTIVE[name]:.0f}",
        )
        for name, n in p.ROWS.items()
    ]
    amc = p.score_se(52.5, 40)
    both = hypot(amc, p.score_se(57.5, 40))
    return [
        "## Macro or item-weighted\n",
        *table("set | problems | macro weight | item weight | share of the macro's variance | independent", rows),
        *prose(
            "Independent: with problems of one stem answered alike. With every set at 60 % and one answer a problem, a "
            f"macro average has a standard error of {p.macro_se(60):.2f} points, {p.macro_se(60, clustered=True):.2f} "
            f"if such problems are one draw and AMC23's {p.SHARED} in Gaokao2023en are the same; the item-weighted "
            f"average has {p.item_se(60):.2f}. One AMC23 score of 52.5 has {amc:.2f}, {amc / 6:.2f} of it in the "
            f"macro; the unpaired difference to 57.5 has {both:.1f}, {both / 6:.2f} in the macro."
        ),
    ]


def group_size() -> list[str]:
    """The table of group sizes on both axes."""
    wide = p.group_size().pivot(index="checkpoint", columns="G", values="difference")
    rows = [(c, *(f"{v:+.2f}" for v in values)) for c, values in zip(wide.index, wide.to_numpy(), strict=True)]
    matched = [
        (f"{budget:,}", ", ".join(f"G={g} at {c}: {d:+.2f}" for g, c, d in cells), trend([d for _, _, d in cells]))
        for budget, cells in p.matched_budgets().items()
    ]
    half = p.sampled_difference(60, 60)
    return [
        "## Group size\n",
        *source("group_size"),
        *table("checkpoint | G=4 | G=8 | G=32", rows),
        "An update takes 8 G trajectories. Where two group sizes were evaluated after equally many:\n",
        *table("trajectories | GMC - TIC | with G", matched),
        *prose(
            "At 800 updates the difference goes up and down with G, and G=32 has then had four times the trajectories "
            "of G=8. At equal trajectories it grows with G twice and shrinks once. The accuracies behind it are not "
            f"printed; at 60 % each difference has {interval(half)} as above, so that neither order is separable."
        ),
    ]


def trend(values: list[float]) -> str:
    """What happens along a row."""
    return "grows" if all(a < b for a, b in pairwise(values)) else "shrinks"


def delays() -> list[str]:
    """Realised mean delays."""
    rows = [
        (row.model, *(f"{getattr(row, m):.2f}" for m in METHODS), f"{100 * (row.gmc / row.tic - 1):+.1f} %")
        for row in p.load("delays").itertuples()
    ]
    return [
        "## Realised delays\n",
        *source("delays"),
        *table("model | GMC | TIC | GRPO | GMC over TIC", rows),
        *prose(
            "A method's delays follow the lengths of its own responses. The article counts GMC's slightly longer ones "
            "in its favour, at 4B too, where its greedy score is the lower one."
        ),
    ]


def claims() -> list[str]:
    """What the article works out, again."""
    values, wrong = p.recomputed(), p.wrong_claims()
    rows = [
        (r.what, r.where, r.printed, f"{values[r.what]:.5g}", "**differs**" if r.what in wrong else "agrees")
        for r in p.load("claims").itertuples()
    ]
    power, eps = ("32^(4/7)", "128^(4/7)"), ("eps* at D=32 before the cap", "eps* at D=128 before the cap")
    return [
        "## The article's own arithmetic\n",
        *source("claims"),
        *table("quantity | item | printed | recomputed | verdict", rows),
        "**Errors found in the article**, none of which changes a conclusion:\n",
        *items(
            f"32^(4/7) and 128^(4/7) are {values[power[0]]:.2f} and {values[power[1]]:.1f}, and eps* before the cap is "
            f"{values[eps[0]]:.2f} and {values[eps[1]]:.2f}; the cap is 1 either way.",
            '"At D=512 all collapse below 42": GMC stands at 42.01.',
            '"Weighted by problems, the conclusion would move towards GMC" (sec. 4): so does AMC23\'s part; of the '
            "whole it "
            "cannot be known from what is printed.",
        ),
        *prose(
            "Its shares and increments come out as printed. [theory.md](../theory.md) has the theory's numbers for "
            "other delays, and why p is smaller in a run that starts at version 0."
        ),
    ]


OURS = {
    "fixed_delay_table": "fixed delay",
    "async_lambda": "simulated async and lambda",
    "eps_grid": "eps, which the paper does not vary",
    "group_size": "group size at equal samples",
}


def beside_ours() -> list[str]:
    """Where ours are, as far as they have been run."""
    there = [f"[{what}]({name}.md)" for name, what in OURS.items() if (p.PAGE.parent / f"{name}.md").exists()]
    return [
        "## Beside ours\n",
        *prose(
            f"The same questions asked of the tiny default, with paired seeds: {', '.join(there)}. A 0.13M-parameter "
            "model on sums is no Qwen3 on MATH500: compare signs, orders and what is separable, not points."
        ),
    ]
