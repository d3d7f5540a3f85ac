-- Spark SQL
CREATE TABLE `credentials` (
  `id` BIGINT COMMENT 'identifier of the credential',
  `hash` STRING COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  `imported_at` TIMESTAMP COMMENT 'when the service imported the credential',
  `source_is_alert_enabled` BOOLEAN COMMENT 'whether the leak raises alerts',
  `query_type` STRING COMMENT 'kind of the query that found the row',
  `query_value` STRING COMMENT 'value of the query; a secret is masked',
  `auth_domains` ARRAY<STRING> COMMENT 'host names that the credential logs in to',
  `query` STRING COMMENT 'from the folder',
  `import_window` STRING COMMENT 'from the folder'
)
USING PARQUET
PARTITIONED BY (`query`, `import_window`)
LOCATION '/data/acme/credentials';

-- Finds the folders; again after every export.
MSCK REPAIR TABLE `credentials`;
