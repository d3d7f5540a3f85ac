-- Snowflake
CREATE TABLE IF NOT EXISTS "CREDENTIALS" (
  "ID" NUMBER(19, 0) NOT NULL COMMENT 'identifier of the credential',
  "HASH" VARCHAR COMMENT 'the leaked secret, plain or hashed at the source, as transform.secret says',
  "IMPORTED_AT" TIMESTAMP_TZ(6) NOT NULL COMMENT 'when the service imported the credential',
  "SOURCE_IS_ALERT_ENABLED" BOOLEAN COMMENT 'whether the leak raises alerts',
  "QUERY_TYPE" VARCHAR NOT NULL COMMENT 'kind of the query that found the row',
  "QUERY_VALUE" VARCHAR NOT NULL COMMENT 'value of the query; a secret is masked',
  "AUTH_DOMAINS" ARRAY COMMENT 'host names that the credential logs in to',
  "SPILLWAY_DATA_SET" VARCHAR COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  "SPILLWAY_SHARD" VARCHAR COMMENT 'path of the shard that the row came in; spillway_loads lists the partitions of a shard'
);

CREATE TABLE IF NOT EXISTS "SPILLWAY_LOADS" (
  "DATA_SET" VARCHAR NOT NULL,
  "SHARD" VARCHAR NOT NULL,
  "SHA256" VARCHAR NOT NULL,
  "ROWS" NUMBER(19, 0) NOT NULL,
  "LOADED_AT" TIMESTAMP_TZ(6) NOT NULL,
  "PARTITIONS" ARRAY,
  "TABLE_NAME" VARCHAR NOT NULL,
  "PIPELINE" VARCHAR NOT NULL
);

-- Without USE_LOGICAL_TYPE timestamps would be read as plain numbers.
CREATE OR REPLACE FILE FORMAT "CREDENTIALS_FORMAT" TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE;

CREATE OR REPLACE STAGE "CREDENTIALS_STAGE"
  URL = 's3://YOUR-BUCKET/PREFIX/'
  -- STORAGE_INTEGRATION = …
  FILE_FORMAT = (FORMAT_NAME = '"CREDENTIALS_FORMAT"');

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
-- COPY remembers which files it has loaded (for 64 days).
COPY INTO "CREDENTIALS" ("ID", "HASH", "IMPORTED_AT", "SOURCE_IS_ALERT_ENABLED", "QUERY_TYPE", "QUERY_VALUE", "AUTH_DOMAINS")
FROM (SELECT $1:"id"::NUMBER(19, 0), $1:"hash"::VARCHAR, $1:"imported_at"::TIMESTAMP_TZ(6), $1:"source_is_alert_enabled"::BOOLEAN, $1:"query_type"::VARCHAR, $1:"query_value"::VARCHAR, $1:"auth_domains"::ARRAY FROM @"CREDENTIALS_STAGE")
PATTERN = '.*/credentials/.*part-[0-9]+[.]parquet';
