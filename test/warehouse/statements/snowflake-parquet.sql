-- Snowflake
CREATE TABLE credentials (
  id NUMBER(19, 0) NOT NULL COMMENT 'identifier of the credential',
  domain VARCHAR COMMENT 'domain of the identity',
  identity_name VARCHAR NOT NULL COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  hash VARCHAR COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  hash_type VARCHAR COMMENT 'how the source had hashed the secret',
  imported_at TIMESTAMP_TZ(6) NOT NULL COMMENT 'when the service imported the credential',
  known_password_id VARCHAR COMMENT 'identifier of a known password',
  source_id VARCHAR NOT NULL COMMENT 'identifier of the leak',
  source_name VARCHAR COMMENT 'name of the leak',
  source_description_en VARCHAR COMMENT 'description of the leak, English',
  source_description_fr VARCHAR COMMENT 'description of the leak, French',
  source_is_alert_enabled BOOLEAN COMMENT 'whether the leak raises alerts',
  source_breached_at TIMESTAMP_TZ(6) COMMENT 'when the source was breached',
  source_leaked_at TIMESTAMP_TZ(6) COMMENT 'when the data was leaked',
  query_type VARCHAR NOT NULL COMMENT 'kind of the query that found the row',
  query_value VARCHAR NOT NULL COMMENT 'what the query asked for; a secret is masked',
  auth_domains ARRAY COMMENT 'host names that the credential logs in to',
  urls ARRAY COMMENT 'addresses that the credential logs in to'
);

-- Without USE_LOGICAL_TYPE timestamps would be read as plain numbers.
CREATE OR REPLACE FILE FORMAT credentials_format TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE;
CREATE OR REPLACE STAGE credentials_stage
  URL = 's3://YOUR-BUCKET/PREFIX/'
  -- STORAGE_INTEGRATION = …
  FILE_FORMAT = credentials_format;

-- COPY remembers which files it has loaded (for 64 days).
COPY INTO credentials (id, domain, identity_name, hash, hash_type, imported_at, known_password_id, source_id, source_name, source_description_en, source_description_fr, source_is_alert_enabled, source_breached_at, source_leaked_at, query_type, query_value, auth_domains, urls)
FROM (SELECT $1:id::NUMBER(19, 0), $1:domain::VARCHAR, $1:identity_name::VARCHAR, $1:hash::VARCHAR, $1:hash_type::VARCHAR, $1:imported_at::TIMESTAMP_TZ(6), $1:known_password_id::VARCHAR, $1:source_id::VARCHAR, $1:source_name::VARCHAR, $1:source_description_en::VARCHAR, $1:source_description_fr::VARCHAR, $1:source_is_alert_enabled::BOOLEAN, $1:source_breached_at::TIMESTAMP_TZ(6), $1:source_leaked_at::TIMESTAMP_TZ(6), $1:query_type::VARCHAR, $1:query_value::VARCHAR, $1:auth_domains::ARRAY, $1:urls::ARRAY FROM @credentials_stage)
PATTERN = '.*/credentials/.*part-[0-9]+[.]parquet';
