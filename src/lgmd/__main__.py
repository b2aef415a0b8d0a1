"""``python -m lgmd``: the command line."""

from lgmd.cli import main

if __name__ == "__main__":
    main()
