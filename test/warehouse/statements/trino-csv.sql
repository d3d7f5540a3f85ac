-- Trino, Hive connector: replace the catalog hive and the schema default where they go by other names
-- Over CSV every column is VARCHAR, "" and null look alike, and a value with a line break is torn: Parquet has none of this.
CREATE TABLE hive.default."credentials" (
  "id" VARCHAR COMMENT 'identifier of the credential',
  "domain" VARCHAR COMMENT 'domain of the identity',
  "identity_name" VARCHAR COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  "hash" VARCHAR COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  "hash_type" VARCHAR COMMENT 'how the source had hashed the secret',
  "imported_at" VARCHAR COMMENT 'when the service imported the credential',
  "known_password_id" VARCHAR COMMENT 'identifier of a known password',
  "source_id" VARCHAR COMMENT 'identifier of the leak',
  "source_name" VARCHAR COMMENT 'name of the leak',
  "source_description_en" VARCHAR COMMENT 'description of the leak, English',
  "source_description_fr" VARCHAR COMMENT 'description of the leak, French',
  "source_is_alert_enabled" VARCHAR COMMENT 'whether the leak raises alerts',
  "source_breached_at" VARCHAR COMMENT 'when the source was breached',
  "source_leaked_at" VARCHAR COMMENT 'when the data was leaked',
  "query_type" VARCHAR COMMENT 'kind of the query that found the row',
  "query_value" VARCHAR COMMENT 'value of the query; a secret is masked',
  "auth_domains" VARCHAR COMMENT 'host names that the credential logs in to',
  "urls" VARCHAR COMMENT 'addresses that the credential logs in to',
  "query" VARCHAR,
  "import_window" VARCHAR
)
WITH (
  external_location = 's3://YOUR-BUCKET/PREFIX/credentials',
  format = 'CSV',
  skip_header_line_count = 1,
  csv_separator = ',',
  csv_quote = '"',
  csv_escape = '"',
  partitioned_by = ARRAY['query', 'import_window']
);

-- Finds the folders; again after every export.
CALL hive.system.sync_partition_metadata('default', 'credentials', 'FULL');
