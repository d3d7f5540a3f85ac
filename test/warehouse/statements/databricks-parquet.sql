-- Databricks
CREATE TABLE IF NOT EXISTS `credentials` (
  `id` BIGINT NOT NULL COMMENT 'identifier of the credential',
  `hash` STRING COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  `imported_at` TIMESTAMP NOT NULL COMMENT 'when the service imported the credential',
  `source_is_alert_enabled` BOOLEAN COMMENT 'whether the leak raises alerts',
  `query_type` STRING NOT NULL COMMENT 'kind of the query that found the row',
  `query_value` STRING NOT NULL COMMENT 'value of the query; a secret is masked',
  `auth_domains` ARRAY<STRING> COMMENT 'host names that the credential logs in to',
  `spillway_data_set` STRING COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` STRING COMMENT 'path of the shard that the row came in; spillway_loads lists the partitions of a shard'
);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` STRING NOT NULL,
  `shard` STRING NOT NULL,
  `sha256` STRING NOT NULL,
  `rows` BIGINT NOT NULL,
  `loaded_at` TIMESTAMP NOT NULL,
  `partitions` ARRAY<STRING>,
  `table_name` STRING NOT NULL,
  `pipeline` STRING NOT NULL
);

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
INSERT INTO `credentials` (`id`, `hash`, `imported_at`, `source_is_alert_enabled`, `query_type`, `query_value`, `auth_domains`)
SELECT `id`, `hash`, `imported_at`, `source_is_alert_enabled`, `query_type`, `query_value`, `auth_domains`
FROM read_files('s3://YOUR-BUCKET/PREFIX/credentials', format => 'parquet', fileNamePattern => '*.parquet', schema => '`id` BIGINT, `hash` STRING, `imported_at` TIMESTAMP, `source_is_alert_enabled` BOOLEAN, `query_type` STRING, `query_value` STRING, `auth_domains` ARRAY<STRING>');
