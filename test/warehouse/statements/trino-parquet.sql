-- Trino, Hive connector: replace the catalog hive and the schema default where they go by other names
SET SESSION hive.timestamp_precision = 'MICROSECONDS';

CREATE TABLE hive.default."credentials" (
  "id" BIGINT COMMENT 'identifier of the credential',
  "hash" VARCHAR COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  "imported_at" TIMESTAMP(6) COMMENT 'when the service imported the credential',
  "source_is_alert_enabled" BOOLEAN COMMENT 'whether the leak raises alerts',
  "query_type" VARCHAR COMMENT 'kind of the query that found the row',
  "query_value" VARCHAR COMMENT 'value of the query; a secret is masked',
  "auth_domains" ARRAY(VARCHAR) COMMENT 'host names that the credential logs in to',
  "query" VARCHAR,
  "import_window" VARCHAR
)
WITH (
  external_location = 's3://YOUR-BUCKET/PREFIX/credentials',
  format = 'PARQUET',
  partitioned_by = ARRAY['query', 'import_window']
);

-- Finds the folders; again after every export.
CALL hive.system.sync_partition_metadata('default', 'credentials', 'FULL');
