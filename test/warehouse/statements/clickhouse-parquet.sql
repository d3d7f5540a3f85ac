-- ClickHouse: times before 1900 and after 2299 do not fit DateTime64
CREATE TABLE IF NOT EXISTS `credentials` (
  `id` Int64 COMMENT 'identifier of the credential',
  `hash` Nullable(String) COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  `imported_at` DateTime64(6, 'UTC') COMMENT 'when the service imported the credential',
  `source_is_alert_enabled` Nullable(Bool) COMMENT 'whether the leak raises alerts',
  `query_type` String COMMENT 'kind of the query that found the row',
  `query_value` String COMMENT 'value of the query; a secret is masked',
  `auth_domains` Array(Nullable(String)) COMMENT 'host names that the credential logs in to',
  `spillway_data_set` Nullable(String) COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` Nullable(String) COMMENT 'path of the shard that the row came in; spillway_loads lists the partitions of a shard'
)
ENGINE = MergeTree
ORDER BY (`query_type`, `query_value`, `imported_at`, `id`);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` String,
  `shard` String,
  `sha256` String,
  `rows` Int64,
  `loaded_at` DateTime64(6, 'UTC'),
  `partitions` Array(Nullable(String)),
  `table_name` String,
  `pipeline` String
)
ENGINE = MergeTree
ORDER BY (data_set, table_name, shard);

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
-- The file function reads below the server's user_files_path; s3(…) takes the same format.
INSERT INTO `credentials` (`id`, `hash`, `imported_at`, `source_is_alert_enabled`, `query_type`, `query_value`, `auth_domains`)
SELECT `id`, `hash`, `imported_at`, `source_is_alert_enabled`, `query_type`, `query_value`, `auth_domains`
FROM file('/data/acme/credentials/**/*.parquet', 'Parquet');
