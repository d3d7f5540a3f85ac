-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
CREATE TABLE IF NOT EXISTS "CREDENTIALS" (
  "ID" NUMBER(19, 0) NOT NULL COMMENT 'identifier of the credential',
  "DOMAIN" VARCHAR COMMENT 'domain of the identity',
  "IDENTITY_NAME" VARCHAR NOT NULL COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  "HASH" VARCHAR COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  "HASH_TYPE" VARCHAR COMMENT 'how the source had hashed the secret',
  "IMPORTED_AT" TIMESTAMP_TZ(6) NOT NULL COMMENT 'when the service imported the credential',
  "KNOWN_PASSWORD_ID" VARCHAR COMMENT 'identifier of a known password',
  "SOURCE_ID" VARCHAR NOT NULL COMMENT 'identifier of the leak',
  "SOURCE_NAME" VARCHAR COMMENT 'name of the leak',
  "SOURCE_DESCRIPTION_EN" VARCHAR COMMENT 'description of the leak, English',
  "SOURCE_DESCRIPTION_FR" VARCHAR COMMENT 'description of the leak, French',
  "SOURCE_IS_ALERT_ENABLED" BOOLEAN COMMENT 'whether the leak raises alerts',
  "SOURCE_BREACHED_AT" TIMESTAMP_TZ(6) COMMENT 'when the source was breached',
  "SOURCE_LEAKED_AT" TIMESTAMP_TZ(6) COMMENT 'when the data was leaked',
  "QUERY_TYPE" VARCHAR NOT NULL COMMENT 'kind of the query that found the row',
  "QUERY_VALUE" VARCHAR NOT NULL COMMENT 'value of the query; a secret is masked',
  "AUTH_DOMAINS" ARRAY COMMENT 'host names that the credential logs in to',
  "URLS" ARRAY COMMENT 'addresses that the credential logs in to',
  "SPILLWAY_DATA_SET" VARCHAR COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  "SPILLWAY_SHARD" VARCHAR COMMENT 'path of the shard that the row came in'
);

CREATE TABLE IF NOT EXISTS "SPILLWAY_LOADS" (
  "DATA_SET" VARCHAR NOT NULL,
  "SHARD" VARCHAR NOT NULL,
  "SHA256" VARCHAR NOT NULL,
  "ROWS" NUMBER(19, 0) NOT NULL,
  "LOADED_AT" TIMESTAMP_TZ(6) NOT NULL,
  "TABLE_NAME" VARCHAR NOT NULL,
  "SPILLWAY_PARTITION" VARCHAR NOT NULL,
  "PIPELINE" VARCHAR NOT NULL
);

-- NULL_IF = () and EMPTY_FIELD_AS_NULL tell null from ""; without ESCAPE_UNENCLOSED_FIELD = NONE a backslash would change values.
CREATE OR REPLACE FILE FORMAT "CREDENTIALS_FORMAT" TYPE = CSV SKIP_HEADER = 1
  FIELD_OPTIONALLY_ENCLOSED_BY = '"' NULL_IF = () EMPTY_FIELD_AS_NULL = TRUE
  ESCAPE = NONE ESCAPE_UNENCLOSED_FIELD = NONE
  COMPRESSION = GZIP ENCODING = 'UTF8';

CREATE STAGE IF NOT EXISTS "CREDENTIALS_STAGE"
  URL = 's3://YOUR-BUCKET/PREFIX/'
  -- STORAGE_INTEGRATION = …
  FILE_FORMAT = (FORMAT_NAME = '"CREDENTIALS_FORMAT"');

CREATE OR REPLACE FILE FORMAT "CREDENTIALS_LINES" TYPE = CSV FIELD_DELIMITER = NONE ESCAPE_UNENCLOSED_FIELD = NONE ENCODING = 'UTF8';

CREATE OR REPLACE TEMPORARY TABLE "CREDENTIALS_SPILLWAY_MANIFEST" AS
SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  SELECT max(REGEXP_SUBSTR(line, '^  "data_set_id": "([^"]+)"', 1, 1, 'e', 1)) OVER () AS data_set,
    coalesce(REGEXP_SUBSTR(line, '^    [{]"path":"([^"]+)"', 1, 1, 'e', 1), '') AS shard,
    REGEXP_SUBSTR(line, '"sha256":"([0-9a-f]+)"', 1, 1, 'e', 1) AS sha256,
    CAST(coalesce(nullif(REGEXP_SUBSTR(line, '"rows":([0-9]+)', 1, 1, 'e', 1), ''), '0') AS NUMBER(19, 0)) AS n
  FROM (SELECT $1 AS line FROM @"CREDENTIALS_STAGE"/_manifest.json (FILE_FORMAT => '"CREDENTIALS_LINES"')) m
  WHERE line LIKE '  "data_set_id": "%' OR line LIKE '    {"path":"%'
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM "SPILLWAY_LOADS" WHERE table_name = 'credentials' GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM "CREDENTIALS" GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard;

BEGIN TRANSACTION;

DELETE FROM "SPILLWAY_LOADS"
WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM "CREDENTIALS_SPILLWAY_MANIFEST") AND shard NOT IN (SELECT shard FROM "CREDENTIALS_SPILLWAY_MANIFEST" WHERE state = 'whole');

DELETE FROM "CREDENTIALS"
WHERE spillway_data_set IN (SELECT data_set FROM "CREDENTIALS_SPILLWAY_MANIFEST") AND coalesce(spillway_shard, '') NOT IN (SELECT shard FROM "CREDENTIALS_SPILLWAY_MANIFEST" WHERE state = 'whole');

EXECUTE IMMEDIATE $$
DECLARE
  batches CURSOR FOR
    SELECT LISTAGG(SHARD, '|') AS PATHS
    FROM (SELECT SHARD, FLOOR(ROW_NUMBER() OVER (ORDER BY SHARD) / 1000) AS BATCH FROM "CREDENTIALS_SPILLWAY_MANIFEST" WHERE STATE = 'missing')
    GROUP BY BATCH;
  copying VARCHAR;
BEGIN
  FOR batch IN batches DO
    copying := 'INSERT INTO "CREDENTIALS" ("ID", "DOMAIN", "IDENTITY_NAME", "HASH", "HASH_TYPE", "IMPORTED_AT", "KNOWN_PASSWORD_ID", "SOURCE_ID", "SOURCE_NAME", "SOURCE_DESCRIPTION_EN", "SOURCE_DESCRIPTION_FR", "SOURCE_IS_ALERT_ENABLED", "SOURCE_BREACHED_AT", "SOURCE_LEAKED_AT", "QUERY_TYPE", "QUERY_VALUE", "AUTH_DOMAINS", "URLS", SPILLWAY_DATA_SET, SPILLWAY_SHARD)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, PARSE_JSON($17), PARSE_JSON($18), (SELECT MAX(DATA_SET) FROM "CREDENTIALS_SPILLWAY_MANIFEST"), REGEXP_SUBSTR(METADATA$FILENAME, ''([^/]+/[^/]+/[^/]+/[^/]+)$'', 1, 1, ''e'', 1)
FROM @"CREDENTIALS_STAGE" (FILE_FORMAT => ''"CREDENTIALS_FORMAT"'', PATTERN => ''.*(' || batch.PATHS || ')'')
WHERE REGEXP_SUBSTR(METADATA$FILENAME, ''([^/]+/[^/]+/[^/]+/[^/]+)$'', 1, 1, ''e'', 1) IN (SELECT SHARD FROM "CREDENTIALS_SPILLWAY_MANIFEST" WHERE STATE = ''missing'')';
    EXECUTE IMMEDIATE :copying;
  END FOR;
END;
$$;

INSERT INTO "SPILLWAY_LOADS" ("DATA_SET", "SHARD", "SHA256", "ROWS", "LOADED_AT", "TABLE_NAME", "SPILLWAY_PARTITION", "PIPELINE")
SELECT c.data_set, c.shard, c.sha256, c.n, CURRENT_TIMESTAMP, 'credentials', c.shard, 'acme'
FROM "CREDENTIALS_SPILLWAY_MANIFEST" c
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM "CREDENTIALS" GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n;

COMMIT;

-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS NUMBER(19, 0)) AS missing
FROM (SELECT count(*) AS n FROM "CREDENTIALS_SPILLWAY_MANIFEST") c, (SELECT count(DISTINCT shard) AS n FROM "SPILLWAY_LOADS" WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM "CREDENTIALS_SPILLWAY_MANIFEST")) l;
