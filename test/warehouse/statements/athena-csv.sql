-- Amazon Athena
-- Over CSV every column is a string, "" and null look alike, a value with a line break is torn, and blanks before a quote can go: Parquet has none of this.
CREATE EXTERNAL TABLE `credentials` (
  `id` string COMMENT 'identifier of the credential',
  `domain` string COMMENT 'domain of the identity',
  `identity_name` string COMMENT 'the identity, an e-mail address as a rule; masked by transform.identity',
  `hash` string COMMENT 'the leaked secret, plain or hashed at the source; masked by transform.secret',
  `hash_type` string COMMENT 'how the source had hashed the secret',
  `imported_at` string COMMENT 'when the service imported the credential',
  `known_password_id` string COMMENT 'identifier of a known password',
  `source_id` string COMMENT 'identifier of the leak',
  `source_name` string COMMENT 'name of the leak',
  `source_description_en` string COMMENT 'description of the leak, English',
  `source_description_fr` string COMMENT 'description of the leak, French',
  `source_is_alert_enabled` string COMMENT 'whether the leak raises alerts',
  `source_breached_at` string COMMENT 'when the source was breached',
  `source_leaked_at` string COMMENT 'when the data was leaked',
  `query_type` string COMMENT 'kind of the query that found the row',
  `query_value` string COMMENT 'value of the query; a secret is masked',
  `auth_domains` string COMMENT 'host names that the credential logs in to',
  `urls` string COMMENT 'addresses that the credential logs in to'
)
PARTITIONED BY (`query` string, `import_window` string)
ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'
WITH SERDEPROPERTIES ('separatorChar' = ',', 'quoteChar' = '"', 'escapeChar' = '"')
STORED AS TEXTFILE
LOCATION 's3://YOUR-BUCKET/PREFIX/credentials/'
TBLPROPERTIES ('skip.header.line.count' = '1');

-- Finds the folders; again after every export.
MSCK REPAIR TABLE `credentials`;
