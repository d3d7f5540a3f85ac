import type { TableFormat, TableSettings } from '../../core/index.ts'
import { identifier, literal } from '../table/table.ts'
import { backslashed, backticked, backtickedEscaped } from './dialect.ts'
import type { DialectName } from './index.ts'

/** How one engine reads a table over the shards. @param name of the table or view that it makes */
type Mount = (tables: TableSettings, name: string) => string
type Mounts = Partial<Readonly<Record<TableFormat, Mount>>>

export function tableMounts(dialect: DialectName, table: string, tables: TableSettings): readonly string[] {
  return tables.formats.flatMap((format) => {
    const mount = MOUNTS[dialect]?.[format]
    return mount === undefined ? [] : [mount(tables, `${table}_${format}`)]
  })
}

/** The metadata of one version. Engines without a catalog of files have to be told which. */
const VERSION = 'metadata/v<N>.metadata.json'
const WHICH = 'N: the number in _iceberg/metadata/version-hint.text'

function icebergRoot({ root }: TableSettings): string {
  return `${root}/_iceberg`
}

/** Google's tools know a bucket by another scheme. */
function google(address: string): string {
  return address.replace(/^s3:/, 'gs:')
}

/** Source: https://duckdb.org/docs/stable/core_extensions/iceberg/overview and …/core_extensions/delta */
const duckdb: Mounts = {
  iceberg: (
    tables,
    name,
  ) => `-- The Iceberg table, always as of its current snapshot. Needed once: INSTALL iceberg;
LOAD iceberg;
CREATE OR REPLACE VIEW ${identifier(name)} AS
SELECT * FROM iceberg_scan(${literal(icebergRoot(tables))});`,
  delta: (
    { root },
    name,
  ) => `-- The Delta table, always as of its current version. Needed once: INSTALL delta;
LOAD delta;
CREATE OR REPLACE VIEW ${identifier(name)} AS
SELECT * FROM delta_scan(${literal(root)});`,
}

/** Source: https://docs.snowflake.com/en/sql-reference/sql/create-iceberg-table-iceberg-files and …-delta */
const snowflake: Mounts = {
  iceberg: (
    { root },
    name,
  ) => `-- The Iceberg table. An external volume that may read ${root}/, and a catalog integration for files:
-- CREATE EXTERNAL VOLUME SPILLWAY_VOLUME STORAGE_LOCATIONS = ((NAME = 'lake' STORAGE_PROVIDER = 'S3' STORAGE_BASE_URL = ${backslashed(`${root}/`)} STORAGE_AWS_ROLE_ARN = 'arn:…')) ALLOW_WRITES = FALSE;
-- CREATE CATALOG INTEGRATION SPILLWAY_ICEBERG CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = ICEBERG ENABLED = TRUE;
-- ${WHICH}
CREATE ICEBERG TABLE ${identifier(name.toUpperCase())}
  EXTERNAL_VOLUME = 'SPILLWAY_VOLUME'
  CATALOG = 'SPILLWAY_ICEBERG'
  METADATA_FILE_PATH = '_iceberg/${VERSION}';
-- After every run:
ALTER ICEBERG TABLE ${identifier(name.toUpperCase())} REFRESH '_iceberg/${VERSION}';`,
  delta: ({ root }, name) => `-- The Delta table, with an external volume whose STORAGE_BASE_URL is ${root}/:
-- CREATE CATALOG INTEGRATION SPILLWAY_DELTA CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = DELTA ENABLED = TRUE;
CREATE ICEBERG TABLE ${identifier(name.toUpperCase())}
  EXTERNAL_VOLUME = 'SPILLWAY_VOLUME'
  CATALOG = 'SPILLWAY_DELTA'
  BASE_LOCATION = '/'
  AUTO_REFRESH = TRUE;`,
}

/** Source: https://cloud.google.com/bigquery/docs/iceberg-external-tables and …/create-delta-lake-table */
const bigquery: Mounts = {
  iceberg: (tables, name) => `-- The Iceberg table; again after every run. ${WHICH}
CREATE OR REPLACE EXTERNAL TABLE \`YOUR_DATASET\`.${backtickedEscaped(name)}
OPTIONS (
  format = 'ICEBERG',
  uris = [${backslashed(google(`${icebergRoot(tables)}/${VERSION}`))}]
);`,
  delta: ({ root }, name) => `-- The Delta table, through a connection of BigQuery
CREATE OR REPLACE EXTERNAL TABLE \`YOUR_DATASET\`.${backtickedEscaped(name)}
WITH CONNECTION \`YOUR_REGION.YOUR_CONNECTION\`
OPTIONS (
  format = 'DELTA_LAKE',
  uris = [${backslashed(google(root))}]
);`,
}

/** Source: https://clickhouse.com/docs/sql-reference/table-functions/iceberg and …/deltalake */
const clickhouse: Mounts = {
  iceberg: (tables, name) => `-- The Iceberg table, always as of its current snapshot
CREATE VIEW ${backtickedEscaped(name)} AS
SELECT * FROM ${clickhouseSource('iceberg', icebergRoot(tables))};`,
  delta: ({ root }, name) => `-- The Delta table, always as of its current version
CREATE VIEW ${backtickedEscaped(name)} AS
SELECT * FROM ${clickhouseSource('deltaLake', root)};`,
}

function clickhouseSource(kind: 'iceberg' | 'deltaLake', address: string): string {
  const [, bucket, key] = /^s3a?:\/\/([^/]+)\/(.*)$/.exec(address) ?? []
  if (bucket !== undefined) return `${kind}S3(${backslashed(`https://${bucket}.s3.amazonaws.com/${key}/`)})`
  if (address.startsWith('file://')) return `${kind}Local(${backslashed(address.slice('file://'.length))})`
  const [, container, account, path] = /^abfss?:\/\/([^@]+)@([^/]+)\/(.*)$/.exec(address) ?? []
  const [url, inside, below] =
    container === undefined
      ? ['https://YOUR-ACCOUNT.blob.core.windows.net', 'YOUR-CONTAINER', 'PREFIX/']
      : [`https://${account!.replace('.dfs.', '.blob.')}`, container, `${path}/`]
  return `${kind}Azure(${[url, inside, below, 'YOUR-ACCOUNT', 'YOUR-KEY'].map((each) => backslashed(each!)).join(', ')})`
}

/** Source: https://iceberg.apache.org/docs/latest/spark-procedures/#register_table and Databricks' CREATE TABLE */
const spark: Mounts = {
  iceberg: (
    tables,
    name,
  ) => `-- The Iceberg table, in a catalog of Spark; for a later snapshot drop it and register it again. ${WHICH}
-- Without a catalog: spark.read.format("iceberg").load(${JSON.stringify(icebergRoot(tables))})
-- PyIceberg: StaticTable.from_metadata(${JSON.stringify(icebergRoot(tables))})
CALL spark_catalog.system.register_table(
  table => ${backslashed(`default.${backticked(name)}`)},
  metadata_file => ${backslashed(`${icebergRoot(tables)}/${VERSION}`)}
);`,
  delta: (
    { root },
    name,
  ) => `-- The Delta table, in Spark with Delta Lake and in Databricks, always as of its current version. Never VACUUM it.
CREATE TABLE ${backticked(name)}
USING DELTA
LOCATION ${backslashed(root)};`,
}

/** Source: https://trino.io/docs/current/connector/iceberg.html#register-table and …/delta-lake.html#register-table */
const trino: Mounts = {
  iceberg: (
    tables,
    name,
  ) => `-- The Iceberg table; for a later snapshot unregister it and register it again. ${WHICH}
CALL iceberg.system.register_table(
  schema_name => 'default',
  table_name => ${literal(name)},
  table_location => ${literal(icebergRoot(tables))},
  metadata_file_name => 'v<N>.metadata.json'
);`,
  delta: ({ root }, name) => `-- The Delta table, always as of its current version
CALL delta.system.register_table(
  schema_name => 'default',
  table_name => ${literal(name)},
  table_location => ${literal(root)}
);`,
}

/** Source: https://docs.aws.amazon.com/athena/latest/ug/delta-lake-tables.html: Iceberg tables come from Glue alone. */
const athena: Mounts = {
  iceberg: (
    tables,
    name,
  ) => `-- The Iceberg table, through Glue. With PyIceberg, again after every run (after drop_table). ${WHICH}
-- load_catalog("glue", type="glue").register_table("default.${name}", ${JSON.stringify(`${icebergRoot(tables)}/${VERSION}`)})`,
  delta: ({ root }, name) => `-- The Delta table, always as of its current version
CREATE EXTERNAL TABLE ${backticked(name)}
LOCATION ${backslashed(`${root}/`)}
TBLPROPERTIES ('table_type' = 'DELTA');`,
}

const MOUNTS: Partial<Readonly<Record<DialectName, Mounts>>> = {
  duckdb,
  snowflake,
  bigquery,
  clickhouse,
  databricks: { delta: spark.delta! },
  spark,
  trino,
  athena,
}
