"""The page: sections in their order, drawn by one template into one file that asks nothing of anyone."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup, escape

from delaysim.analysis.grid import spelled
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.report.accuracy import accuracy_section, collapse_section
from delaysim.analysis.report.answer import Answer, Asked, answer_section, headline
from delaysim.analysis.report.benchmarks import benchmark_section
from delaysim.analysis.report.blocks import Block, Figure, Fold, Section, Switch, Table
from delaysim.analysis.report.colours import definitions
from delaysim.analysis.report.curves import curve_section
from delaysim.analysis.report.delays import delay_section, length_section
from delaysim.analysis.report.drawing import counted, used_colours
from delaysim.analysis.report.experts import expert_section
from delaysim.analysis.report.origin import LeftOut, run_section, trouble_section
from delaysim.analysis.report.promised import theory_section
from delaysim.analysis.report.ratios import ratio_section
from delaysim.analysis.report.sampled import bias_section
from delaysim.analysis.report.samples import sample_section
from delaysim.analysis.report.speed import speed_section
from delaysim.analysis.report.spent import time_section
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.sweeps import sweep_sections
from delaysim.analysis.report.tables import comma_separated, latex, markdown
from delaysim.analysis.report.trade import trade_section
from delaysim.analysis.report.words import count, listing, printable, ranges, sentence


@dataclass(frozen=True)
class Content:
    """Everything a page says."""

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]


def content(
    studies: Sequence[Study], asked: Asked, missing: Sequence[LeftOut], evaluations: Sequence[Outcome] = ()
) -> Content:
    """Sections of every study, then what holds for all."""
    answers = [Answer(study, asked) for study in studies]
    sections = [
        section for i, answer in enumerate(answers) for section in _numbered(answer, i, len(answers), evaluations)
    ]
    return Content(
        title=". ".join(sentence(headline(answer)) for answer in answers),
        summary=[_summary(study) for study in studies],
        sections=[*sections, trouble_section(studies, missing), run_section(studies)],
    )


def _numbered(answer: Answer, i: int, of: int, evaluations: Sequence[Outcome]) -> Iterator[Section]:
    """Keys that are unique on the page, and the study's name where there are several."""
    for section in _sections(answer, evaluations):
        name = f"{section.name}, {answer.study.suite}" if of > 1 else section.name
        yield Section(f"{section.key}-{i}" if of > 1 else section.key, name, sentence(section.title), section.blocks)


def _sections(answer: Answer, evaluations: Sequence[Outcome]) -> Iterator[Section]:
    study = answer.study
    yield answer_section(answer)
    yield accuracy_section(answer)
    yield curve_section(study)
    yield from filter(None, (trade_section(study), speed_section(study), time_section(study), collapse_section(study)))
    yield from sweep_sections(study)
    yield from filter(None, [benchmark_section(study, evaluations)])
    yield delay_section(study)
    yield ratio_section(study)
    yield from filter(None, [expert_section(study)])
    yield length_section(study)
    yield from filter(None, [bias_section(study)])
    yield theory_section(study)
    yield sample_section(study)


def _summary(study: Study) -> str:
    first = study.runs[0].settings
    levels = listing([study.name(level) for level in study.levels])
    delays = f"{study.over} = {', '.join(map(study.asked, study.delays))}"
    seeds = f"seed{'s' if len(study.seeds) > 1 else ''} {ranges(study.seeds)}"
    return (
        f"{count(len(study.runs), 'run')} of {study.suite} on {first['task']} with model {first['model']}: {levels}; "
        f"{delays}; {seeds}; {spelled(first['N'])} updates of {spelled(first['B'])} groups of {spelled(first['G'])}."
    )


def render(page: Content) -> str:
    """The page as one file."""
    loader = jinja2.PackageLoader("delaysim.analysis.report", "templates")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_final,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["copies"] = _copies
    colours = {colour for section in page.sections for svg in _drawings(section.blocks) for colour in used_colours(svg)}
    environment.globals |= {scheme: Markup(definitions(colours, scheme)) for scheme in ("light", "dark")}
    with counted() as number:
        environment.globals["drawing"] = lambda panel: Markup(number(panel.svg, str(escape(printable(panel.alt)))))
        text = environment.get_template("page.html").render(page=page)
    return re.sub(r"\n{2,}", "\n", text)


def _final(value: object) -> object:
    """What others wrote, before it is escaped; Markup is ours."""
    return printable(value) if type(value) is str else value


def _drawings(blocks: Iterable[Block]) -> Iterator[str]:
    """Every SVG among them."""
    for block in blocks:
        if isinstance(block, Figure):
            yield from (panel.svg for panel in block.panels)
        elif isinstance(block, Switch):
            yield from _drawings(figure for _, figure in block.options)
        elif isinstance(block, Fold):
            yield from _drawings(block.blocks)


def _copies(table: Table) -> Mapping[str, str]:
    return {"Markdown": markdown(table), "CSV": comma_separated(table), "LaTeX": latex(table)}
