"""``python -m symattn_cli`` is the command line."""

from symattn_cli.app import app

if __name__ == "__main__":
    app(prog_name="symattn")
