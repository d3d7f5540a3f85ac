# Two OpenLineage events of a run, from what `spillway run --json` prints: that it began, and how it ended.
# $id: a UUID; $service: where the rows came from.
"https://www.npmjs.com/package/spillway" as $producer
| "https://openlineage.io/spec" as $spec
| (.manifest // "" | rtrimstr("/_manifest.json")) as $path
| ($path | capture("^(?<namespace>[a-z0-9]+://[^/]+)/(?<name>.+)$") // { namespace: "file", name: . }) as $place
| . as $run
| (["START", now - .duration_ms / 1000], [{ complete: "COMPLETE", failed: "FAIL" }[.status] // "ABORT", now]) as [$type, $time]
| {
    eventType: $type,
    eventTime: ($time | todate),
    producer: $producer,
    schemaURL: "\($spec)/2-0-2/OpenLineage.json#/$defs/RunEvent",
    run: { runId: $id },
    job: { namespace: "spillway", name: $run.pipeline },
    inputs: [{ namespace: $service, name: "credentials" }],
    outputs: [$place + { outputFacets: { outputStatistics: {
      _producer: $producer,
      _schemaURL: "\($spec)/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
      rowCount: $run.rows, size: $run.bytes, fileCount: $run.shards
    } } }]
  }
