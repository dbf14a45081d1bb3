"""The official npm client end to end, against the scripted model."""
import npm_suite
from serving import main


class Scripted(npm_suite.NpmSuite):
    suite = "scripted.mjs"


if __name__ == "__main__":
    main()
