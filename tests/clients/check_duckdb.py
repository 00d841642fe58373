"""duckdb: 100,000 rows of JSONL, Parquet and CSV, typed as they are."""

import sys
from pathlib import Path

import duckdb

folder = Path(sys.argv[1])
for ending in ("jsonl", "parquet", "csv"):
    file = str(folder / f"many.{ending}")
    types = {row[0]: row[1] for row in duckdb.sql(f"describe select * from '{file}'").fetchall()}
    ((n,),) = duckdb.sql(f"select count(*) from '{file}'").fetchall()
    assert n == 100_000, (ending, n)
    assert types["conf_l0"] in ("DOUBLE", "FLOAT"), (ending, types)
    assert types["label_l0"] in ("BIGINT", "UTINYINT", "TINYINT"), (ending, types)
    ((low, high),) = duckdb.sql(f"select min(conf_l0), max(conf_l0) from '{file}'").fetchall()
    assert 0 <= low <= high <= 1
rows = duckdb.sql(f"select * from read_csv('{folder}/odd/csv-raw/odd.csv', all_varchar=true)")
assert rows.fetchall()[0][0] == "007"
print("100,000 rows each; confidences are numbers, labels whole ones")
