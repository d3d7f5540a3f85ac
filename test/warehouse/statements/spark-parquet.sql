-- Spark SQL
CREATE TABLE `credentials` (
  `id` BIGINT COMMENT 'identifier of the credential',
  `domain` STRING COMMENT 'domain of the identity',
  `identity_name` STRING COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` STRING COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` STRING COMMENT 'how the source had hashed the secret',
  `imported_at` TIMESTAMP COMMENT 'when the service imported the credential',
  `known_password_id` STRING COMMENT 'identifier of a known password',
  `source_id` STRING COMMENT 'identifier of the leak',
  `source_name` STRING COMMENT 'name of the leak',
  `source_description_en` STRING COMMENT 'description of the leak, English',
  `source_description_fr` STRING COMMENT 'description of the leak, French',
  `source_is_alert_enabled` BOOLEAN COMMENT 'whether the leak raises alerts',
  `source_breached_at` TIMESTAMP COMMENT 'when the source was breached',
  `source_leaked_at` TIMESTAMP COMMENT 'when the data was leaked',
  `query_type` STRING COMMENT 'kind of the query that found the row',
  `query_value` STRING COMMENT 'value of the query; a secret is masked',
  `auth_domains` ARRAY<STRING> COMMENT 'host names that the credential logs in to',
  `urls` ARRAY<STRING> COMMENT 'addresses that the credential logs in to',
  `query` STRING COMMENT 'from the folder',
  `import_window` STRING COMMENT 'from the folder'
)
USING PARQUET
PARTITIONED BY (`query`, `import_window`)
LOCATION '/data/acme/credentials';

-- Finds the folders; again after every export.
MSCK REPAIR TABLE `credentials`;
