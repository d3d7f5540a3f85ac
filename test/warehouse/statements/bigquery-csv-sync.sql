-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
CREATE TABLE IF NOT EXISTS `YOUR_DATASET`.`credentials` (
  `id` INT64 NOT NULL OPTIONS (description = 'identifier of the credential'),
  `domain` STRING OPTIONS (description = 'domain of the identity'),
  `identity_name` STRING NOT NULL OPTIONS (description = 'the identity, an e-mail address as a rule; masked by transform.identity'),
  `hash` STRING OPTIONS (description = 'the leaked secret, plain or hashed at the source; masked by transform.secret'),
  `hash_type` STRING OPTIONS (description = 'how the source had hashed the secret'),
  `imported_at` TIMESTAMP NOT NULL OPTIONS (description = 'when the service imported the credential'),
  `known_password_id` STRING OPTIONS (description = 'identifier of a known password'),
  `source_id` STRING NOT NULL OPTIONS (description = 'identifier of the leak'),
  `source_name` STRING OPTIONS (description = 'name of the leak'),
  `source_description_en` STRING OPTIONS (description = 'description of the leak, English'),
  `source_description_fr` STRING OPTIONS (description = 'description of the leak, French'),
  `source_is_alert_enabled` BOOL OPTIONS (description = 'whether the leak raises alerts'),
  `source_breached_at` TIMESTAMP OPTIONS (description = 'when the source was breached'),
  `source_leaked_at` TIMESTAMP OPTIONS (description = 'when the data was leaked'),
  `query_type` STRING NOT NULL OPTIONS (description = 'kind of the query that found the row'),
  `query_value` STRING NOT NULL OPTIONS (description = 'value of the query; a secret is masked'),
  `auth_domains` STRING OPTIONS (description = 'host names that the credential logs in to'),
  `urls` STRING OPTIONS (description = 'addresses that the credential logs in to'),
  `spillway_data_set` STRING OPTIONS (description = 'identity of the data set that the row came in: data_set_id of its manifest'),
  `spillway_shard` STRING OPTIONS (description = 'path of the shard that the row came in')
)
PARTITION BY TIMESTAMP_TRUNC(`imported_at`, MONTH);

CREATE TABLE IF NOT EXISTS `YOUR_DATASET`.`spillway_loads` (
  `data_set` STRING NOT NULL,
  `shard` STRING NOT NULL,
  `sha256` STRING NOT NULL,
  `rows` INT64 NOT NULL,
  `loaded_at` TIMESTAMP NOT NULL,
  `table_name` STRING NOT NULL,
  `spillway_partition` STRING NOT NULL,
  `pipeline` STRING NOT NULL
);

CREATE OR REPLACE EXTERNAL TABLE `YOUR_DATASET`.`credentials_files` (`id` INT64, `domain` STRING, `identity_name` STRING, `hash` STRING, `hash_type` STRING, `imported_at` TIMESTAMP, `known_password_id` STRING, `source_id` STRING, `source_name` STRING, `source_description_en` STRING, `source_description_fr` STRING, `source_is_alert_enabled` BOOL, `source_breached_at` TIMESTAMP, `source_leaked_at` TIMESTAMP, `query_type` STRING, `query_value` STRING, `auth_domains` STRING, `urls` STRING)
OPTIONS (
  format = 'CSV',
  skip_leading_rows = 1,
  -- Values may hold line breaks.
  allow_quoted_newlines = true,
  -- Values may hold tabs and other control characters.
  preserve_ascii_control_characters = true,
  encoding = 'UTF-8',
  uris = ['gs://YOUR-BUCKET/PREFIX/credentials/*.csv.gz']
);

CREATE OR REPLACE EXTERNAL TABLE `YOUR_DATASET`.`credentials_lines` (line STRING)
OPTIONS (
  format = 'CSV',
  -- Each line is one value.
  field_delimiter = '\t',
  quote = '',
  encoding = 'UTF-8',
  uris = ['gs://YOUR-BUCKET/PREFIX/_manifest.json']
);

CREATE OR REPLACE TEMP TABLE `credentials_spillway_manifest` AS
SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  SELECT max(REGEXP_EXTRACT(line, '^  "data_set_id": "([^"]+)"')) OVER () AS data_set,
    coalesce(REGEXP_EXTRACT(line, '^    [{]"path":"([^"]+)"'), '') AS shard,
    REGEXP_EXTRACT(line, '"sha256":"([0-9a-f]+)"') AS sha256,
    CAST(coalesce(nullif(REGEXP_EXTRACT(line, '"rows":([0-9]+)'), ''), '0') AS INT64) AS n
  FROM (SELECT line FROM `YOUR_DATASET`.`credentials_lines`) m
  WHERE line LIKE '  "data_set_id": "%' OR line LIKE '    {"path":"%'
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM `YOUR_DATASET`.`spillway_loads` WHERE table_name = 'credentials' GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `YOUR_DATASET`.`credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard;

BEGIN TRANSACTION;

DELETE FROM `YOUR_DATASET`.`spillway_loads`
WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND shard NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

DELETE FROM `YOUR_DATASET`.`credentials`
WHERE spillway_data_set IN (SELECT data_set FROM `credentials_spillway_manifest`) AND coalesce(spillway_shard, '') NOT IN (SELECT shard FROM `credentials_spillway_manifest` WHERE state = 'whole');

BEGIN
  DECLARE missing ARRAY<STRING> DEFAULT ARRAY(SELECT CONCAT('gs://YOUR-BUCKET/PREFIX/', shard) FROM `credentials_spillway_manifest` WHERE state = 'missing');
  INSERT INTO `YOUR_DATASET`.`credentials` (`id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`, spillway_data_set, spillway_shard)
  SELECT `id`, `domain`, `identity_name`, `hash`, `hash_type`, `imported_at`, `known_password_id`, `source_id`, `source_name`, `source_description_en`, `source_description_fr`, `source_is_alert_enabled`, `source_breached_at`, `source_leaked_at`, `query_type`, `query_value`, `auth_domains`, `urls`, (SELECT MAX(data_set) FROM `credentials_spillway_manifest`), REGEXP_EXTRACT(_FILE_NAME, '([^/]+/[^/]+/[^/]+/[^/]+)$')
  FROM `YOUR_DATASET`.`credentials_files`
  WHERE _FILE_NAME IN UNNEST(missing);
END;

INSERT INTO `YOUR_DATASET`.`spillway_loads` (`data_set`, `shard`, `sha256`, `rows`, `loaded_at`, `table_name`, `spillway_partition`, `pipeline`)
SELECT c.data_set, c.shard, c.sha256, c.n, CURRENT_TIMESTAMP, 'credentials', c.shard, 'acme'
FROM `credentials_spillway_manifest` c
LEFT JOIN (SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM `YOUR_DATASET`.`credentials` GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n;

COMMIT TRANSACTION;

-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS INT64) AS missing
FROM (SELECT count(*) AS n FROM `credentials_spillway_manifest`) c, (SELECT count(DISTINCT shard) AS n FROM `YOUR_DATASET`.`spillway_loads` WHERE table_name = 'credentials' AND data_set IN (SELECT data_set FROM `credentials_spillway_manifest`)) l;
