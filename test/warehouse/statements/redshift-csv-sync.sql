-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
CREATE TABLE IF NOT EXISTS "credentials" (
  "id" BIGINT NOT NULL,
  "domain" VARCHAR(65535),
  "identity_name" VARCHAR(65535) NOT NULL,
  "hash" VARCHAR(65535),
  "hash_type" VARCHAR(65535),
  "imported_at" TIMESTAMPTZ NOT NULL,
  "known_password_id" VARCHAR(65535),
  "source_id" VARCHAR(65535) NOT NULL,
  "source_name" VARCHAR(65535),
  "source_description_en" VARCHAR(65535),
  "source_description_fr" VARCHAR(65535),
  "source_is_alert_enabled" BOOLEAN,
  "source_breached_at" TIMESTAMPTZ,
  "source_leaked_at" TIMESTAMPTZ,
  "query_type" VARCHAR(65535) NOT NULL,
  "query_value" VARCHAR(65535) NOT NULL,
  "auth_domains" SUPER,
  "urls" SUPER,
  "spillway_data_set" VARCHAR(65535),
  "spillway_shard" VARCHAR(65535)
)
SORTKEY ("imported_at");

CREATE TABLE IF NOT EXISTS "spillway_loads" (
  "data_set" VARCHAR(65535) NOT NULL,
  "shard" VARCHAR(65535) NOT NULL,
  "sha256" VARCHAR(65535) NOT NULL,
  "rows" BIGINT NOT NULL,
  "loaded_at" TIMESTAMPTZ NOT NULL,
  "table_name" VARCHAR(65535) NOT NULL,
  "spillway_partition" VARCHAR(65535) NOT NULL,
  "pipeline" VARCHAR(65535) NOT NULL
);

DROP TABLE IF EXISTS "credentials_spillway_lines";

DROP TABLE IF EXISTS "credentials_spillway_stage";

CREATE TEMP TABLE "credentials_spillway_stage" (
  "id" BIGINT NOT NULL,
  "domain" VARCHAR(65535),
  "identity_name" VARCHAR(65535) NOT NULL,
  "hash" VARCHAR(65535),
  "hash_type" VARCHAR(65535),
  "imported_at" TIMESTAMPTZ NOT NULL,
  "known_password_id" VARCHAR(65535),
  "source_id" VARCHAR(65535) NOT NULL,
  "source_name" VARCHAR(65535),
  "source_description_en" VARCHAR(65535),
  "source_description_fr" VARCHAR(65535),
  "source_is_alert_enabled" BOOLEAN,
  "source_breached_at" TIMESTAMPTZ,
  "source_leaked_at" TIMESTAMPTZ,
  "query_type" VARCHAR(65535) NOT NULL,
  "query_value" VARCHAR(65535) NOT NULL,
  "auth_domains" SUPER,
  "urls" SUPER
);

CREATE TEMP TABLE "credentials_spillway_lines" (line VARCHAR(65535));

INSERT INTO "credentials_spillway_lines" VALUES
  ('  "data_set_id": "3f8331a2-4911-48d5-b1d9-7717701f5294"'),
  ('    {"path":"credentials/query=domain.acme.com/import_window=2024-01-01/part-00000.parquet","rows":13,"sha256":"ef9d3106"}');

CREATE OR REPLACE PROCEDURE "credentials_spillway_copy"() AS $$
DECLARE
  missing RECORD;
BEGIN
  FOR missing IN SELECT data_set, shard FROM "credentials_spillway_manifest" WHERE state = 'missing' LOOP
    DELETE FROM "credentials_spillway_stage";
    EXECUTE 'COPY "credentials_spillway_stage" FROM ' || quote_literal('s3://YOUR-BUCKET/PREFIX/' || missing.shard) || ' IAM_ROLE default CSV IGNOREHEADER 1
GZIP
TIMEFORMAT ''auto''';
    INSERT INTO "credentials" ("id", "domain", "identity_name", "hash", "hash_type", "imported_at", "known_password_id", "source_id", "source_name", "source_description_en", "source_description_fr", "source_is_alert_enabled", "source_breached_at", "source_leaked_at", "query_type", "query_value", "auth_domains", "urls", spillway_data_set, spillway_shard)
    SELECT "id", "domain", "identity_name", "hash", "hash_type", "imported_at", "known_password_id", "source_id", "source_name", "source_description_en", "source_description_fr", "source_is_alert_enabled", "source_breached_at", "source_leaked_at", "query_type", "query_value", "auth_domains", "urls", missing.data_set, missing.shard FROM "credentials_spillway_stage";
  END LOOP;
END;
$$ LANGUAGE plpgsql;

DROP TABLE IF EXISTS "credentials_spillway_manifest";

CREATE TEMP TABLE "credentials_spillway_manifest" AS
SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  SELECT max(REGEXP_SUBSTR(line, '^  "data_set_id": "([^"]+)"', 1, 1, 'e')) OVER () AS data_set,
    coalesce(REGEXP_SUBSTR(line, '^    [{]"path":"([^"]+)"', 1, 1, 'e'), '') AS shard,
    REGEXP_SUBSTR(line, '"sha256":"([0-9a-f]+)"', 1, 1, 'e') AS sha256,
    CAST(coalesce(nullif(REGEXP_SUBSTR(line, '"rows":([0-9]+)', 1, 1, 'e'), ''), '0') AS BIGINT) AS n
  FROM (SELECT line FROM "credentials_spillway_lines") m
  WHERE line LIKE '  "data_set_id": "%' OR line LIKE '    {"path":"%'
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM "spillway_loads" WHERE table_name = 'credentials' GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM "credentials" GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard;

BEGIN;

DELETE FROM "spillway_loads"
WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM "credentials_spillway_manifest") AND shard NOT IN (SELECT shard FROM "credentials_spillway_manifest" WHERE state = 'whole');

DELETE FROM "credentials"
WHERE spillway_data_set IN (SELECT data_set FROM "credentials_spillway_manifest") AND coalesce(spillway_shard, '') NOT IN (SELECT shard FROM "credentials_spillway_manifest" WHERE state = 'whole');

CALL "credentials_spillway_copy"();

INSERT INTO "spillway_loads" ("data_set", "shard", "sha256", "rows", "loaded_at", "table_name", "spillway_partition", "pipeline")
SELECT c.data_set, c.shard, c.sha256, c.n, SYSDATE, 'credentials', c.shard, 'acme'
FROM "credentials_spillway_manifest" c
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM "credentials" GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n;

COMMIT;

-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS BIGINT) AS missing
FROM (SELECT count(*) AS n FROM "credentials_spillway_manifest") c, (SELECT count(DISTINCT shard) AS n FROM "spillway_loads" WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM "credentials_spillway_manifest")) l;
