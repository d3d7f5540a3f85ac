import * as z from 'zod'
import { TABLE_FORMATS, type TableFormat } from '../../core/index.ts'
import { ADDRESSES, STORE_SECTIONS } from '../stores.ts'
import { LOCATION, URL_ALONE } from '../values/addresses.ts'
import { AGE_EXPECTED, AGE_PATTERN, parseAge } from '../values/ages.ts'
import { key, onlyIf } from './key.ts'
import { choice, flag, integer, list, parsed, section, text, variableName } from './leaves.ts'

const inTables = onlyIf<readonly TableFormat[]>(
  'load.table_formats',
  (formats) => formats.length > 0,
  () => 'goes with table_formats, which names none',
)
const onlyWith = (format: string) =>
  onlyIf<string>(
    'load.format',
    (found) => found === format,
    (found) => `does not go with format: ${found}`,
  )

const partitionBy = choice('query', 'window')

export const load = section({
  format: key(choice('parquet', 'csv').prefault('parquet'), 'File format.'),
  engine: key(
    choice('columnar', 'parquetjs-lite', 'csv-stringify').prefault('columnar'),
    'Encoder: columnar, or for parquet parquetjs-lite, for csv csv-stringify.',
  ),
  path: key(
    text(/^[^\0]+$/, `the path of a folder, ${ADDRESSES}`).optional(),
    'Folder of the data set, relative to the working directory, or s3://bucket/prefix, or az://container/prefix. Default output/<name>.',
  ),
  ...STORE_SECTIONS,
  partition_by: key(
    z
      .union(
        [
          choice('query', 'window', 'none').transform((value) => (value === 'none' ? [] : [value])),
          z.array(partitionBy),
        ],
        'query, window, none or a list such as [query, window]',
      )
      .prefault(['query', 'window']),
    'What gets separate folders.',
  ),
  shard_rows: key(
    integer(1).prefault(1_000_000),
    'Rows of one file. The last of a folder has fewer, and so have files that a feed, `forget` or `compact` ended.',
  ),
  compression: key(
    choice('none', 'snappy', 'gzip', 'zstd').optional(),
    'parquet: none, snappy, gzip or zstd (Node 22.15 or newer); csv: none or gzip. Default: snappy for parquet, none for csv.',
  ),
  table_formats: key(
    list(choice(...TABLE_FORMATS), 'a list of iceberg and delta').prefault([]),
    'Table formats that the data set has besides its files: iceberg, delta, or both. Only with parquet and its columnar engine.',
  ),
  table_location: key(
    parsed(...LOCATION).optional(),
    'Address of load.path for readers of the Iceberg table. Default: load.path.',
    inTables,
  ),
  table_snapshots: key(
    integer(1, 1000).prefault(10),
    'How many snapshots of the Iceberg table are kept.',
    inTables,
  ),
  catalog: key(
    section({
      uri: key(
        parsed(...URL_ALONE),
        'Address of an Iceberg REST catalog; https unless the host is this machine. Required.',
      ),
      allow_http: key(
        flag().prefault(false),
        'Allow plain http to other machines: tokens are then sent unencrypted.',
      ),
      warehouse: key(
        text(/^[!-~]+(?: [!-~]+)*$/, 'the name of a warehouse').optional(),
        'The warehouse of the catalog. Default: that of the catalog.',
      ),
      namespace: key(
        text(/^[\w-]+(?:\.[\w-]+)*$/, 'a name of letters, digits, _ and -, levels separated by dots'),
        'Where the table is; made if it is not there. Required.',
      ),
      table: key(
        text(/^[\w-]+$/, 'a name of letters, digits, _ and -').optional(),
        "Name of the table. Default: the pipeline's.",
      ),
      token_env: key(
        variableName().optional(),
        'Environment variable with a token for the catalog; <name>_FILE may name a file instead. Default: none is sent.',
      ),
      oauth2: key(
        section({
          token_url: key(
            parsed(...URL_ALONE),
            'Where client id and secret are exchanged for a token. Required.',
          ),
          client_id_env: key(
            variableName(),
            'Environment variable with the client id; <name>_FILE may name a file instead. Required.',
          ),
          client_secret_env: key(variableName(), 'The same, with the client secret. Required.'),
          scope: key(
            text(/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/, 'scopes, separated by blanks').optional(),
            'Scope of the token. Default: that of the server.',
          ),
        }).optional(),
        'OAuth2 client credentials, instead of token_env. Default: none.',
      ),
    }).optional(),
    'Iceberg REST catalog that shows the Iceberg table. Default: none.',
    onlyIf<readonly TableFormat[]>(
      'load.table_formats',
      (formats) => formats.includes('iceberg'),
      () => 'goes with table_formats, which does not name iceberg',
    ),
  ),
  keep: key(
    parsed(AGE_PATTERN, AGE_EXPECTED, parseAge).optional(),
    'How old partitions may become before `prune` removes them: <n>d, <n>w, <n>mo or <n>y. A run removes nothing. Default: none; `prune` needs --older-than.',
  ),
  file_mode: key(
    text(
      /^(?:0o?)?[67][0-7]{2}$/,
      "an octal file mode such as '0600' or 0o640, which lets the owner read and write",
    ).prefault('0600'),
    'Permissions of files; folders get x for each r.',
  ),
  csv: key(
    section({
      escape_formulas: key(
        flag().prefault(false),
        "Put ' before values that a spreadsheet would read as formulas.",
      ),
    }).prefault({}),
    'Settings for csv alone.',
    onlyWith('csv'),
  ),
  parquet: key(
    section({
      encodings: key(
        choice('compact', 'plain').prefault('compact'),
        'compact: smaller encodings, which most readers support; plain: encodings that all readers support, in larger files. The engine parquetjs-lite writes these only.',
      ),
    }).prefault({}),
    'Settings for parquet alone.',
    onlyWith('parquet'),
  ),
})
