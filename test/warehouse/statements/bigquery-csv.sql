-- BigQuery: replace YOUR_DATASET
-- In CSV it takes a text that is null for "": Parquet has no such trouble.
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

-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.
LOAD DATA INTO `YOUR_DATASET`.`credentials`
FROM FILES (
  format = 'CSV',
  skip_leading_rows = 1,
  -- Values may hold line breaks.
  allow_quoted_newlines = true,
  -- Values may hold tabs and other control characters.
  preserve_ascii_control_characters = true,
  encoding = 'UTF-8',
  uris = ['gs://YOUR-BUCKET/PREFIX/credentials/*.csv.gz'],
  -- The table has columns of its own after those of the files.
  allow_jagged_rows = true
);

-- Or the files as they stand, as an external table:
CREATE OR REPLACE EXTERNAL TABLE `YOUR_DATASET`.`credentials_files`
WITH PARTITION COLUMNS (`query` STRING, `import_window` STRING)
OPTIONS (
  format = 'CSV',
  skip_leading_rows = 1,
  -- Values may hold line breaks.
  allow_quoted_newlines = true,
  -- Values may hold tabs and other control characters.
  preserve_ascii_control_characters = true,
  encoding = 'UTF-8',
  uris = ['gs://YOUR-BUCKET/PREFIX/credentials/*.csv.gz'],
  hive_partition_uri_prefix = 'gs://YOUR-BUCKET/PREFIX/credentials'
);
