"""python -m foretell."""

from foretell.cli.main import run

if __name__ == "__main__":
    run()
