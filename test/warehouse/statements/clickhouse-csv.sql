-- ClickHouse: times before 1900 and after 2299 do not fit DateTime64
CREATE TABLE IF NOT EXISTS `credentials` (
  `id` Int64 COMMENT 'identifier of the credential',
  `domain` Nullable(String) COMMENT 'domain of the identity',
  `identity_name` String COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` Nullable(String) COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` Nullable(String) COMMENT 'how the source had hashed the secret',
  `imported_at` DateTime64(6, 'UTC') COMMENT 'when the service imported the credential',
  `known_password_id` Nullable(String) COMMENT 'identifier of a known password',
  `source_id` String COMMENT 'identifier of the leak',
  `source_name` Nullable(String) COMMENT 'name of the leak',
  `source_description_en` Nullable(String) COMMENT 'description of the leak, English',
  `source_description_fr` Nullable(String) COMMENT 'description of the leak, French',
  `source_is_alert_enabled` Nullable(Bool) COMMENT 'whether the leak raises alerts',
  `source_breached_at` Nullable(DateTime64(6, 'UTC')) COMMENT 'when the source was breached',
  `source_leaked_at` Nullable(DateTime64(6, 'UTC')) COMMENT 'when the data was leaked',
  `query_type` String COMMENT 'kind of the query that found the row',
  `query_value` String COMMENT 'value of the query; a secret is masked',
  `auth_domains` Array(Nullable(String)) COMMENT 'host names that the credential logs in to',
  `urls` Array(Nullable(String)) COMMENT 'addresses that the credential logs in to',
  `spillway_data_set` Nullable(String) COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` Nullable(String) COMMENT 'path of the shard that the row came in'
)
ENGINE = MergeTree
ORDER BY (`query_type`, `query_value`, `imported_at`, `id`);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` String,
  `shard` String,
  `sha256` String,
  `rows` Int64,
  `loaded_at` DateTime64(6, 'UTC'),
  `table_name` String,
  `spillway_partition` String,
  `pipeline` String
)
ENGINE = MergeTree
ORDER BY (data_set, table_name, shard);

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
-- The file function reads below the server's user_files_path; s3(…) takes the same format.
INSERT INTO `credentials` (`id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`)
SELECT `id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, JSONExtract(ifNull(`auth_domains`, '[]'), 'Array(Nullable(String))'), JSONExtract(ifNull(`urls`, '[]'), 'Array(Nullable(String))')
FROM file('/data/acme/credentials/**/*.csv.gz', 'CSVWithNames', '`id` Int64, `domain` Nullable(String), `identity_name` String, `hash` Nullable(String), `hash_type` Nullable(String), `imported_at` DateTime64(6, \'UTC\'), `known_password_id` Nullable(String), `source_id` String, `source_name` Nullable(String), `source_description_en` Nullable(String), `source_description_fr` Nullable(String), `source_is_alert_enabled` Nullable(Bool), `source_breached_at` Nullable(DateTime64(6, \'UTC\')), `source_leaked_at` Nullable(DateTime64(6, \'UTC\')), `query_type` String, `query_value` String, `auth_domains` Nullable(String), `urls` Nullable(String)')
SETTINGS format_csv_null_representation = '', input_format_csv_empty_as_default = 0, date_time_input_format = 'best_effort',
  -- Otherwise blanks and tabs around a value would go, and a quote at its beginning.
  input_format_csv_trim_whitespaces = 0, format_csv_allow_single_quotes = 0;
