-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
CREATE TABLE IF NOT EXISTS `credentials` (
  `id` BIGINT NOT NULL COMMENT 'identifier of the credential',
  `domain` STRING COMMENT 'domain of the identity',
  `identity_name` STRING NOT NULL COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` STRING COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` STRING COMMENT 'how the source had hashed the secret',
  `imported_at` TIMESTAMP NOT NULL COMMENT 'when the service imported the credential',
  `known_password_id` STRING COMMENT 'identifier of a known password',
  `source_id` STRING NOT NULL COMMENT 'identifier of the leak',
  `source_name` STRING COMMENT 'name of the leak',
  `source_description_en` STRING COMMENT 'description of the leak, English',
  `source_description_fr` STRING COMMENT 'description of the leak, French',
  `source_is_alert_enabled` BOOLEAN COMMENT 'whether the leak raises alerts',
  `source_breached_at` TIMESTAMP COMMENT 'when the source was breached',
  `source_leaked_at` TIMESTAMP COMMENT 'when the data was leaked',
  `query_type` STRING NOT NULL COMMENT 'kind of the query that found the row',
  `query_value` STRING NOT NULL COMMENT 'value of the query; a secret is masked',
  `auth_domains` ARRAY<STRING> COMMENT 'host names that the credential logs in to',
  `urls` ARRAY<STRING> COMMENT 'addresses that the credential logs in to',
  `spillway_data_set` STRING COMMENT 'identity of the data set that the row came in: data_set_id of its manifest',
  `spillway_shard` STRING COMMENT 'path of the shard that the row came in'
);

CREATE TABLE IF NOT EXISTS `spillway_loads` (
  `data_set` STRING NOT NULL,
  `shard` STRING NOT NULL,
  `sha256` STRING NOT NULL,
  `rows` BIGINT NOT NULL,
  `loaded_at` TIMESTAMP NOT NULL,
  `table_name` STRING NOT NULL,
  `spillway_partition` STRING NOT NULL,
  `pipeline` STRING NOT NULL
);

CREATE OR REPLACE TABLE `credentials_spillway_manifest` AS
SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  SELECT max(regexp_extract(line, '^  "data_set_id": "([^"]+)"', 1)) OVER () AS data_set,
    coalesce(regexp_extract(line, '^    [{]"path":"([^"]+)"', 1), '') AS shard,
    regexp_extract(line, '"sha256":"([0-9a-f]+)"', 1) AS sha256,
    CAST(coalesce(nullif(regexp_extract(line, '"rows":([0-9]+)', 1), ''), '0') AS BIGINT) AS n
  FROM (SELECT line FROM VALUES
    ('  "data_set_id": "3f8331a2-4911-48d5-b1d9-7717701f5294"'),
    ('    {"path":"credentials/query=domain.acme.com/import_window=2024-01-01/part-00000.parquet","rows":13,"sha256":"ef9d3106"}') AS v(line)) m
  WHERE line LIKE '  "data_set_id": "%' OR line LIKE '    {"path":"%'
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM `spillway_loads` WHERE table_name = 'credentials' GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard;

DELETE FROM `spillway_loads`
WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND shard NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

DELETE FROM `credentials`
WHERE spillway_data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND coalesce(spillway_shard, '') NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

INSERT INTO `credentials` (`id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`, spillway_data_set, spillway_shard)
SELECT f.`id`, f.`domain`, f.`identity_name`, f.`hash`, f.`hash_type`, f.`imported_at`, f.`known_password_id`, f.`source_id`, f.`source_name`, f.`source_description_en`, f.`source_description_fr`, f.`source_is_alert_enabled`, f.`source_breached_at`, f.`source_leaked_at`, f.`query_type`, f.`query_value`, f.`auth_domains`, f.`urls`, c.data_set, c.shard
FROM (
  SELECT `id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, from_json(`auth_domains`, 'ARRAY<STRING>') AS `auth_domains`, from_json(`urls`, 'ARRAY<STRING>') AS `urls`, replace(regexp_extract(_metadata.file_path, '([^/]+/[^/]+/[^/]+/[^/]+)$', 1), '%25', '%') AS spillway_file
  FROM read_files('s3://YOUR-BUCKET/PREFIX/credentials', format => 'csv', fileNamePattern => '*.csv.gz', schema => '`id` BIGINT, `domain` STRING, `identity_name` STRING, `hash` STRING, `hash_type` STRING, `imported_at` TIMESTAMP, `known_password_id` STRING, `source_id` STRING, `source_name` STRING, `source_description_en` STRING, `source_description_fr` STRING, `source_is_alert_enabled` BOOLEAN, `source_breached_at` TIMESTAMP, `source_leaked_at` TIMESTAMP, `query_type` STRING, `query_value` STRING, `auth_domains` STRING, `urls` STRING', header => true, multiLine => true, quote => '"', escape => '"', encoding => 'UTF-8')
) f
JOIN `credentials_spillway_manifest` c ON f.spillway_file = replace(c.shard, '%25', '%')
WHERE c.state = 'missing';

INSERT INTO `spillway_loads` (`data_set`, `shard`, `sha256`, `rows`, `loaded_at`, `table_name`, `spillway_partition`, `pipeline`)
SELECT c.data_set, c.shard, c.sha256, c.n, CURRENT_TIMESTAMP, 'credentials', c.shard, 'acme'
FROM `credentials_spillway_manifest` c
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n;

-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS BIGINT) AS missing
FROM (SELECT count(*) AS n FROM `credentials_spillway_manifest`) c, (SELECT count(DISTINCT shard) AS n FROM `spillway_loads` WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`)) l;
