-- Amazon Redshift
CREATE TABLE "credentials" (
  "id" BIGINT NOT NULL,
  "hash" VARCHAR(65535),
  "imported_at" TIMESTAMPTZ NOT NULL,
  "source_is_alert_enabled" BOOLEAN,
  "query_type" VARCHAR(65535) NOT NULL,
  "query_value" VARCHAR(65535) NOT NULL,
  "auth_domains" SUPER
)
SORTKEY ("imported_at");

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
-- COPY takes the columns of Parquet by their position, so the table has to have them in this order.
COPY "credentials"
FROM 's3://YOUR-BUCKET/PREFIX/credentials/'
IAM_ROLE default
FORMAT AS PARQUET SERIALIZETOJSON;

ALTER TABLE "credentials" ADD COLUMN "spillway_data_set" VARCHAR(65535);
ALTER TABLE "credentials" ADD COLUMN "spillway_shard" VARCHAR(65535);
COMMENT ON COLUMN "credentials"."id" IS 'identifier of the credential';
COMMENT ON COLUMN "credentials"."hash" IS 'the leaked secret, plain or hashed at the source, as transform.secret says';
COMMENT ON COLUMN "credentials"."imported_at" IS 'when the service imported the credential';
COMMENT ON COLUMN "credentials"."source_is_alert_enabled" IS 'whether the leak raises alerts';
COMMENT ON COLUMN "credentials"."query_type" IS 'kind of the query that found the row';
COMMENT ON COLUMN "credentials"."query_value" IS 'value of the query; a secret is masked';
COMMENT ON COLUMN "credentials"."auth_domains" IS 'host names that the credential logs in to';
COMMENT ON COLUMN "credentials"."spillway_data_set" IS 'identity of the data set that the row came in: data_set_id of its manifest';
COMMENT ON COLUMN "credentials"."spillway_shard" IS 'path of the shard that the row came in; spillway_loads lists the partitions of a shard';

CREATE TABLE IF NOT EXISTS "spillway_loads" (
  "data_set" VARCHAR(65535) NOT NULL,
  "shard" VARCHAR(65535) NOT NULL,
  "sha256" VARCHAR(65535) NOT NULL,
  "rows" BIGINT NOT NULL,
  "loaded_at" TIMESTAMPTZ NOT NULL,
  "partitions" SUPER,
  "table_name" VARCHAR(65535) NOT NULL,
  "pipeline" VARCHAR(65535) NOT NULL
);
