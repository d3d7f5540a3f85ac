-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
SET insert_deduplicate = 0;

SET allow_nondeterministic_mutations = 1;

SET mutations_sync = 2;

CREATE TABLE IF NOT EXISTS `credentials` (
  `id` Int64 COMMENT 'identifier of the credential',
  `domain` Nullable(String) COMMENT 'domain of the identity',
  `identity_name` String COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` Nullable(String) COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` Nullable(String) COMMENT 'how the source had hashed the secret',
  `imported_at` DateTime64(6, 'UTC') COMMENT 'when the service imported the credential',
  `known_password_id` Nullable(String) COMMENT 'identifier of a known password',
  `source_id` String COMMENT 'identifier of the leak',
  `source_name` Nullable(String) COMMENT 'name of the leak',
  `source_description_en` Nullable(String) COMMENT 'description of the leak, English',
  `source_description_fr` Nullable(String) COMMENT 'description of the leak, French',
  `source_is_alert_enabled` Nullable(Bool) COMMENT 'whether the leak raises alerts',
  `source_breached_at` Nullable(DateTime64(6, 'UTC')) COMMENT 'when the source was breached',
  `source_leaked_at` Nullable(DateTime64(6, 'UTC')) COMMENT 'when the data was leaked',
  `query_type` String COMMENT 'kind of the query that found the row',
  `query_value` String COMMENT 'value of the query; a secret is masked',
  `auth_domains` Array(Nullable(String)) COMMENT 'host names that the credential logs in to',
  `urls` Array(Nullable(String)) COMMENT 'addresses that the credential logs in to',
  `spillway_data_set` Nullable(String) COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` Nullable(String) COMMENT 'path of the shard that the row came in'
)
ENGINE = MergeTree
ORDER BY (`query_type`, `query_value`, `imported_at`, `id`);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` String,
  `shard` String,
  `sha256` String,
  `rows` Int64,
  `loaded_at` DateTime64(6, 'UTC'),
  `table_name` String,
  `spillway_partition` String,
  `pipeline` String
)
ENGINE = MergeTree
ORDER BY (data_set, table_name, shard);

CREATE OR REPLACE TABLE `credentials_spillway_manifest` ENGINE = MergeTree ORDER BY shard AS
SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  SELECT max(extract(line, '^  "data_set_id": "([^"]+)"')) OVER () AS data_set,
    coalesce(extract(line, '^    [{]"path":"([^"]+)"'), '') AS shard,
    extract(line, '"sha256":"([0-9a-f]+)"') AS sha256,
    CAST(coalesce(nullif(extract(line, '"rows":([0-9]+)'), ''), '0') AS Int64) AS n
  FROM (SELECT line FROM file('/data/acme/_manifest.json', 'LineAsString')) m
  WHERE line LIKE '  "data_set_id": "%' OR line LIKE '    {"path":"%'
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM `spillway_loads` WHERE table_name = 'credentials' GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard;

ALTER TABLE `spillway_loads` DELETE
WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND shard NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

ALTER TABLE `credentials` DELETE
WHERE spillway_data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND coalesce(spillway_shard, '') NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

-- The file function reads below the server's user_files_path; s3(…) takes the same format.
INSERT INTO `credentials` (`id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`, spillway_data_set, spillway_shard)
SELECT `id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, JSONExtract(ifNull(`auth_domains`, '[]'), 'Array(Nullable(String))'), JSONExtract(ifNull(`urls`, '[]'), 'Array(Nullable(String))'), (SELECT max(data_set) FROM `credentials_spillway_manifest`), extract(_path, '([^/]+/[^/]+/[^/]+/[^/]+)$')
FROM file('/data/acme/credentials/*/*/*.csv.gz', 'CSVWithNames', '`id` Int64, `domain` Nullable(String), `identity_name` String, `hash` Nullable(String), `hash_type` Nullable(String), `imported_at` DateTime64(6, \'UTC\'), `known_password_id` Nullable(String), `source_id` String, `source_name` Nullable(String), `source_description_en` Nullable(String), `source_description_fr` Nullable(String), `source_is_alert_enabled` Nullable(Bool), `source_breached_at` Nullable(DateTime64(6, \'UTC\')), `source_leaked_at` Nullable(DateTime64(6, \'UTC\')), `query_type` String, `query_value` String, `auth_domains` Nullable(String), `urls` Nullable(String)')
WHERE extract(_path, '([^/]+/[^/]+/[^/]+/[^/]+)$') IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'missing')
SETTINGS format_csv_null_representation = '', input_format_csv_empty_as_default = 0, date_time_input_format = 'best_effort',
  -- Otherwise blanks and tabs around a value would go, and a quote at its beginning.
  input_format_csv_trim_whitespaces = 0, format_csv_allow_single_quotes = 0;

INSERT INTO `spillway_loads` (`data_set`, `shard`, `sha256`, `rows`, `loaded_at`, `table_name`, `spillway_partition`, `pipeline`)
SELECT c.data_set, c.shard, c.sha256, c.n, now64(6), 'credentials', c.shard, 'acme'
FROM `credentials_spillway_manifest` c
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n;

-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS Int64) AS missing
FROM (SELECT count(*) AS n FROM `credentials_spillway_manifest`) c, (SELECT count(DISTINCT shard) AS n FROM `spillway_loads` WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`)) l;
