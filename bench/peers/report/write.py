def write(lines, results, setting, out):
    from peers import stats
    for r in results:
        print(r["line"])
        for s in r["sides"]:
            v=[x for x in s["rounds"] if x]
            print("   ", s["side"], s["kernel"], s["reason"], s["agrees"], s["difference"], s["differs_in"], len(v), stats.quartiles(v).median/1e6 if v else None, s["memory"])
    return 0
