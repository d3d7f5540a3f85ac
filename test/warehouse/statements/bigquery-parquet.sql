-- BigQuery: replace YOUR_DATASET
CREATE TABLE IF NOT EXISTS `YOUR_DATASET`.`credentials` (
  `id` INT64 NOT NULL OPTIONS (description = 'identifier of the credential'),
  `hash` STRING OPTIONS (description = 'the leaked secret, plain or hashed at the source, as transform.secret says'),
  `imported_at` TIMESTAMP NOT NULL OPTIONS (description = 'when the service imported the credential'),
  `source_is_alert_enabled` BOOL OPTIONS (description = 'whether the leak raises alerts'),
  `query_type` STRING NOT NULL OPTIONS (description = 'kind of the query that found the row'),
  `query_value` STRING NOT NULL OPTIONS (description = 'value of the query; a secret is masked'),
  `auth_domains` ARRAY<STRING> OPTIONS (description = 'host names that the credential logs in to'),
  `spillway_data_set` STRING OPTIONS (description = 'identity of the data set that the row came in: data_set_id of its manifest'),
  `spillway_shard` STRING OPTIONS (description = 'path of the shard that the row came in; spillway_loads lists the partitions of a shard')
)
PARTITION BY TIMESTAMP_TRUNC(`imported_at`, MONTH);

CREATE TABLE IF NOT EXISTS `YOUR_DATASET`.`spillway_loads` (
  `data_set` STRING NOT NULL,
  `shard` STRING NOT NULL,
  `sha256` STRING NOT NULL,
  `rows` INT64 NOT NULL,
  `loaded_at` TIMESTAMP NOT NULL,
  `partitions` ARRAY<STRING>,
  `table_name` STRING NOT NULL,
  `pipeline` STRING NOT NULL
);

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
LOAD DATA INTO `YOUR_DATASET`.`credentials`
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = true,
  uris = ['gs://YOUR-BUCKET/PREFIX/credentials/*.parquet']
);

-- Or the files as they stand, as an external table:
CREATE OR REPLACE EXTERNAL TABLE `YOUR_DATASET`.`credentials_files`
WITH PARTITION COLUMNS (`query` STRING, `import_window` STRING)
OPTIONS (
  format = 'PARQUET',
  enable_list_inference = true,
  uris = ['gs://YOUR-BUCKET/PREFIX/credentials/*.parquet'],
  hive_partition_uri_prefix = 'gs://YOUR-BUCKET/PREFIX/credentials'
);
