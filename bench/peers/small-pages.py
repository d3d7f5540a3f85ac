"""
Baseline for small pages: requests, orjson and pyarrow, a row group for every 10,000 rows. No validation, no retries, no
checkpoint, no fsync. Writes its resource usage as bench/usage.mjs does. Arguments: base URL, domains.
"""

import json
import os
import resource
import sys
from datetime import datetime

import orjson
import pyarrow
import pyarrow.parquet
import requests

ROW_GROUP_ROWS = 10_000
TIME = pyarrow.timestamp("us", tz="UTC")
SCHEMA = pyarrow.schema(
    [
        ("id", pyarrow.int64()),
        *[(name, pyarrow.string()) for name in ("domain", "identity_name", "hash", "hash_type")],
        ("imported_at", TIME),
        *[
            (name, pyarrow.string())
            for name in ("source_id", "source_name", "source_description_en", "source_description_fr")
        ],
        ("source_is_alert_enabled", pyarrow.bool_()),
        ("source_breached_at", TIME),
        ("source_leaked_at", TIME),
        ("query_type", pyarrow.string()),
        ("query_value", pyarrow.string()),
    ]
)


def time(text):
    return None if text is None else datetime.fromisoformat(text)


def flat(item, domain):
    source = item["source"]
    return {
        "id": item["id"],
        "domain": item["domain"],
        "identity_name": item["identity_name"],
        "hash": None if item["hash"] is None else "[REDACTED]",
        "hash_type": item["hash_type"],
        "imported_at": time(item["imported_at"]),
        "source_id": item["source_id"],
        "source_name": source["name"],
        "source_description_en": source["description_en"],
        "source_description_fr": source["description_fr"],
        "source_is_alert_enabled": source["is_alert_enabled"],
        "source_breached_at": time(source["breached_at"]),
        "source_leaked_at": time(source["leaked_at"]),
        "query_type": "domain",
        "query_value": domain,
    }


def pages(base_url, domain):
    session = requests.Session()
    session.headers["authorization"] = "Bearer bench"
    cursor = None
    while True:
        body = {"query": {"type": "domain", "fqdn": domain}, "size": 100, "from": cursor}
        response = session.post(f"{base_url}/v4/credentials/global/_search", json=body)
        page = orjson.loads(response.content)
        yield page["items"]
        cursor = page["next"]
        if cursor is None:
            return


def main(base_url, domains):
    output = os.environ["BENCH_OUTPUT"]
    os.makedirs(output, exist_ok=True)
    rows = []
    with pyarrow.parquet.ParquetWriter(os.path.join(output, "rows.parquet"), SCHEMA) as writer:
        for number in range(domains):
            domain = f"d{number}.example.com"
            for items in pages(base_url, domain):
                rows.extend(flat(item, domain) for item in items)
                if len(rows) >= ROW_GROUP_ROWS:
                    writer.write_table(pyarrow.Table.from_pylist(rows, SCHEMA))
                    rows = []
        if rows:
            writer.write_table(pyarrow.Table.from_pylist(rows, SCHEMA))
    used = resource.getrusage(resource.RUSAGE_SELF)
    usage = {"cpuSeconds": used.ru_utime + used.ru_stime, "peakMegabytes": used.ru_maxrss * 1024 / 1e6}
    with open(os.environ["BENCH_USAGE"], "w") as file:
        json.dump(usage, file)


main(sys.argv[1], int(sys.argv[2]))
