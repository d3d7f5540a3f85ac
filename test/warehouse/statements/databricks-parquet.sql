-- Databricks
CREATE TABLE IF NOT EXISTS `credentials` (
  `id` BIGINT NOT NULL COMMENT 'identifier of the credential',
  `domain` STRING COMMENT 'domain of the identity',
  `identity_name` STRING NOT NULL COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` STRING COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` STRING COMMENT 'how the source had hashed the secret',
  `imported_at` TIMESTAMP NOT NULL COMMENT 'when the service imported the credential',
  `known_password_id` STRING COMMENT 'identifier of a known password',
  `source_id` STRING NOT NULL COMMENT 'identifier of the leak',
  `source_name` STRING COMMENT 'name of the leak',
  `source_description_en` STRING COMMENT 'description of the leak, English',
  `source_description_fr` STRING COMMENT 'description of the leak, French',
  `source_is_alert_enabled` BOOLEAN COMMENT 'whether the leak raises alerts',
  `source_breached_at` TIMESTAMP COMMENT 'when the source was breached',
  `source_leaked_at` TIMESTAMP COMMENT 'when the data was leaked',
  `query_type` STRING NOT NULL COMMENT 'kind of the query that found the row',
  `query_value` STRING NOT NULL COMMENT 'value of the query; a secret is masked',
  `auth_domains` ARRAY<STRING> COMMENT 'host names that the credential logs in to',
  `urls` ARRAY<STRING> COMMENT 'addresses that the credential logs in to',
  `spillway_data_set` STRING COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` STRING COMMENT 'path of the shard that the row came in'
);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` STRING NOT NULL,
  `shard` STRING NOT NULL,
  `sha256` STRING NOT NULL,
  `rows` BIGINT NOT NULL,
  `loaded_at` TIMESTAMP NOT NULL,
  `table_name` STRING NOT NULL,
  `spillway_partition` STRING NOT NULL,
  `pipeline` STRING NOT NULL
);

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
INSERT INTO `credentials` (`id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`)
SELECT `id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`
FROM read_files('s3://YOUR-BUCKET/PREFIX/credentials', format => 'parquet', fileNamePattern => '*.parquet', schema => '`id` BIGINT, `domain` STRING, `identity_name` STRING, `hash` STRING, `hash_type` STRING, `imported_at` TIMESTAMP, `known_password_id` STRING, `source_id` STRING, `source_name` STRING, `source_description_en` STRING, `source_description_fr` STRING, `source_is_alert_enabled` BOOLEAN, `source_breached_at` TIMESTAMP, `source_leaked_at` TIMESTAMP, `query_type` STRING, `query_value` STRING, `auth_domains` ARRAY<STRING>, `urls` ARRAY<STRING>');
