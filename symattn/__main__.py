"""``python -m symattn`` is the command line."""

from symattn_cli import app

if __name__ == "__main__":
    app(prog_name="symattn")
