-- Amazon Athena
CREATE EXTERNAL TABLE `credentials` (
  `id` bigint COMMENT 'identifier of the credential',
  `hash` string COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  `imported_at` timestamp COMMENT 'when the service imported the credential',
  `source_is_alert_enabled` boolean COMMENT 'whether the leak raises alerts',
  `query_type` string COMMENT 'kind of the query that found the row',
  `query_value` string COMMENT 'value of the query; a secret is masked',
  `auth_domains` array<string> COMMENT 'host names that the credential logs in to'
)
PARTITIONED BY (`query` string, `import_window` string)
STORED AS PARQUET
LOCATION 's3://YOUR-BUCKET/PREFIX/credentials/';

-- Finds the folders; again after every export.
MSCK REPAIR TABLE `credentials`;
