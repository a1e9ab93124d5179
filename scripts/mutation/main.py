"""Which single-line mutations does no test see? (docs/testing.md)"""
import argparse

import places


def show(prefixes):
    """Prints the mutations that survived, by file and line."""
    verdicts, mutations, file = places.load("verdicts.json", {}), places.mutations(), None
    left = [(mutations[int(n)]["file"], mutations[int(n)]["line"], int(n), v) for n, v in verdicts.items()
            if v != "caught" and int(n) in mutations and mutations[int(n)]["file"].startswith(prefixes)]
    for name, line, number, verdict in sorted(left):
        if name != file:
            file = name
            print(file)
        print(f"  {number} line {line}, {verdict}: {mutations[number]['text']}")
    print(f"{len(left)} mutations")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="build the library with all mutations; run each test once over it")
    judge = commands.add_parser("judge", help="run the tests that should catch COUNT more mutations")
    judge.add_argument("count", type=int)
    survivors = commands.add_parser("survivors", help="list what no test caught")
    for each in (judge, survivors):
        each.add_argument("prefixes", nargs="*", default=[""], metavar="PREFIX", help="of files: src/formats")
    attempt = commands.add_parser("try", help="run one test under mutations")
    attempt.add_argument("test", help="tests/room/name_test.cc, or arguments of pytest in quotes")
    attempt.add_argument("numbers", nargs="+", metavar="NUMBER")
    return parser.parse_args()


def main():
    asked = arguments()
    places.WORK.mkdir(parents=True, exist_ok=True)
    if asked.command == "prepare":
        import cpp_places
        import mutated_build
        import reach
        cpp_places.find()
        mutated_build.build()
        reach.reach()
    elif asked.command == "judge":
        import judge
        judge.judge(asked.count, asked.prefixes)
    elif asked.command == "survivors":
        show(tuple(asked.prefixes))
    else:
        import try_test
        try_test.try_test(asked.test, asked.numbers)


main()
