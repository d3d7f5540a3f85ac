import * as z from 'zod'
import {
  AGE_EXPECTED,
  AGE_PATTERN,
  EXTRA_TYPES,
  IDENTITY_POLICIES,
  INVALID_POLICIES,
  KNOWN_EXTRAS,
  parseAge,
  SECRET_POLICIES,
  TABLE_FORMATS,
} from '../../core/index.ts'
import {
  ADDRESS_EXPECTED,
  ADDRESS_PATTERN,
  LOCATION_EXPECTED,
  LOCATION_PATTERN,
  parseAddress,
  parseLocation,
  parseUrl,
  URL_EXPECTED,
  URL_PATTERN,
} from '../values/addresses.ts'
import {
  byteSize,
  choice,
  countOrShare,
  duration,
  flag,
  integer,
  integerOrAuto,
  limit,
  list,
  parsed,
  rate,
  section,
  text,
  variableName,
} from './leaves.ts'
import { domain, query, windows } from './query-schema.ts'

/**
 * A pipeline file, key by key. Checks of several keys are in the `resolve-*` files.
 * Descriptions and defaults are what editors show.
 */

const address = () => parsed(ADDRESS_PATTERN, ADDRESS_EXPECTED, parseAddress)

const service = section({
  base_url: parsed(URL_PATTERN, URL_EXPECTED, parseUrl).meta({
    description:
      'Host and fixed prefix segment of the service; https unless the host is this machine. Required.',
  }),
  allow_http: flag().prefault(false).meta({
    description: 'Allow plain http to other machines: tokens and leaked secrets are then sent unencrypted.',
  }),
  token_env: variableName().optional().meta({
    description:
      'Environment variable with the access token; <name>_FILE may name a file instead. Default SPILLWAY_TOKEN.',
  }),
  api_key_env: variableName().optional().meta({
    description:
      'Environment variable with an API key that is exchanged for tokens, instead of token_env. Default: none.',
  }),
  token_url: address().optional().meta({
    description:
      'Where the API key is exchanged: a path on the host of base_url, or a URL. Default /tokens/generate.',
  }),
  tenant_id: integer(0)
    .optional()
    .meta({ description: 'Tenant that exchanged tokens are for. Default: that of the key.' }),
  token_lifetime: duration('1s', '365d').optional().meta({
    description: 'How long an exchanged token lives; it is renewed before. Default 1h.',
  }),
  token_test_url: address().optional().meta({
    description:
      'Where `check` tests the token for free: a path on the host of base_url, or a URL. Default: /tokens/test, where the service has it.',
  }),
  organization: text(/^[\w.@/-]{1,100}$/, 'up to 100 letters, digits and . _ @ / -')
    .optional()
    .meta({
      description:
        'Name of the organization whose rate limit and quota this uses, for runs of many workers. Default: that of the token test, else the host of base_url.',
    }),
  search_path: address().prefault('/v4/credentials/global/_search').meta({
    description: 'Credential search: a path under base_url, or a URL.',
  }),
  report_path: address().prefault('/v4/threat_flow/reports').meta({
    description: 'Threat-flow reports: a path under base_url, or a URL.',
  }),
  requests_per_second: rate(10_000).prefault(1).meta({
    description:
      'Requests a second to the credential search, all partitions together; may be a fraction. The second search may allow 4.',
  }),
  basic_requests_per_second: rate(10_000).prefault(4).meta({
    description: 'Requests a second to everything but the credential search.',
  }),
  timeout: duration('1ms', '1d').prefault('60s').meta({
    description: 'Longest duration of one request, from the headers sent to the last byte.',
  }),
  retries: integer(0, 100).prefault(8).meta({
    description: 'How often a failed request is sent again: 2 means three requests at most.',
  }),
  max_response_bytes: byteSize(1024, 2 ** 31)
    .prefault('256MB')
    .meta({
      description: 'Largest response that is accepted.',
    }),
}).meta({ description: 'The service, and how to reach it. Required.' })

const extract = section({
  resource: choice('credentials', 'reports').prefault('credentials').meta({ description: 'What to export.' }),
  domains: list(domain(), 'a list of domain names').optional().meta({
    description: 'Short for domain queries. Default: none.',
  }),
  domains_file: text(/./, 'the path of a file').optional().meta({
    description:
      'File with one domain a line and # comments, relative to the file that names it. Default: none.',
  }),
  queries: list(query, 'a list of queries')
    .optional()
    .meta({ description: 'Queries of any kind. Default: none.' }),
  ids: list(integer(0), 'a list of report ids')
    .optional()
    .meta({ description: 'Reports to fetch, by id. Default: none.' }),
  all: flag().optional().meta({ description: 'Fetch every report. Default: false.' }),
  windows: windows.optional(),
  lag: duration('0s', '365d').optional().meta({
    description: 'With until: now, windows that ended less than this ago wait. Default 15m.',
  }),
  order: choice('asc', 'desc').prefault('asc').meta({
    description: 'Order by import time; with asc a resumed run gets rows that were imported in between.',
  }),
  page_size: integerOrAuto(1, 10_000).prefault('auto').meta({
    description:
      'Maximum number of items in one request; fewer if the service can not serve so many. auto: 10000, for reports 10.',
  }),
  include: list(text(/^[a-z0-9_]+$/, 'a field name (a-z, 0-9 and _)'), 'a list of field names')
    .optional()
    .meta({
      description:
        'Optional fields to request, such as known_password_id, auth_domains or urls. Default: none.',
    }),
  concurrency: integer(1, 64).prefault(4).meta({
    description: 'Chains in flight; they share the rate.',
  }),
  max_requests: limit(1).prefault(500).meta({
    description: 'Budget of one run in requests, retries among them; none: no budget.',
  }),
  monthly_searches: limit(1).prefault('none').meta({
    description:
      'Searches of the quota that all runs of the data set may spend in a calendar month (UTC); a page may cost several. none: no such share.',
  }),
  min_searches_remaining: limit(0).prefault(100).meta({
    description:
      'Searches of the quota to be left, by the service’s count: a page that may cost more is not requested. none: no reserve.',
  }),
}).meta({ description: 'What to request. Required.' })

const columnName = z.string('a column name')

const knownExtras = KNOWN_EXTRAS.map(({ name }) => name) as [string, ...string[]]
const extraColumn = z.union(
  [
    choice(...knownExtras),
    section({
      name: text(
        /^[a-z][a-z0-9_]{0,62}$/,
        'the name of a column (a-z, 0-9 and _, a letter first, at most 63 characters)',
      ).meta({ description: 'Name of the column.' }),
      path: text(
        /^(?=.{1,200}$)[^.]+(?:\.[^.]+){0,15}$/,
        'the names of up to 16 members joined by dots, such as details.severity',
      ).meta({
        description: 'Path of the field: names of members from the credential on, joined by dots.',
      }),
      type: choice(...EXTRA_TYPES).meta({
        description: 'Type of the field; json: any value, as compact JSON.',
      }),
    }),
  ],
  `${knownExtras.join(' | ')}, or { name, path, type }`,
)

const transform = section({
  secret: choice(...SECRET_POLICIES)
    .prefault('redact')
    .meta({
      description: 'How leaked secrets are masked; plaintext also needs --allow-plaintext at each run.',
    }),
  identity: choice(...IDENTITY_POLICIES)
    .prefault('keep')
    .meta({ description: 'How identities are masked.' }),
  mask_key_env: variableName().prefault('SPILLWAY_MASK_KEY').meta({
    description: 'Environment variable with the key of the hmac policies, 32 bytes or more.',
  }),
  columns: list(columnName, 'a list of column names').optional().meta({
    description: 'Columns to export. Default: all.',
  }),
  extra_columns: list(extraColumn, 'a list of columns').optional().meta({
    description:
      'Columns after the others, in this order: fields of the public documentation by name, and fields that this version does not know. Default: none.',
  }),
  on_invalid: choice(...INVALID_POLICIES)
    .prefault('quarantine')
    .meta({
      description: 'What happens to items that break the schema.',
    }),
  max_quarantined: countOrShare().prefault('1%').meta({
    description:
      'Items of a partition that may be quarantined, as a count or a share (of at least 100 items); beyond it the partition fails.',
  }),
}).meta({ description: 'Masking and columns.' })

const partitionBy = choice('query', 'window')

const load = section({
  format: choice('parquet', 'csv').prefault('parquet').meta({ description: 'File format.' }),
  engine: choice('columnar', 'parquetjs-lite', 'csv-stringify').prefault('columnar').meta({
    description: 'Encoder: columnar, or for parquet parquetjs-lite, for csv csv-stringify.',
  }),
  path: text(/^[^\0]+$/, 'the path of a folder, s3://bucket/prefix or az://container/prefix')
    .optional()
    .meta({
      description:
        'Folder of the data set, relative to the working directory, or s3://bucket/prefix, or az://container/prefix. Default output/<name>.',
    }),
  s3: section({
    endpoint: parsed(URL_PATTERN, URL_EXPECTED, parseUrl).optional().meta({
      description:
        'Address of an S3-compatible store. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, ~/.aws, or AWS itself.',
    }),
    region: text(/^[a-z0-9-]{1,64}$/, 'a region such as eu-central-1')
      .optional()
      .meta({
        description:
          'Region of the bucket. Default: AWS_REGION or ~/.aws, or us-east-1 where there is an endpoint.',
      }),
    allow_http: flag().prefault(false).meta({
      description: 'Allow plain http to another machine: rows are then sent unencrypted.',
    }),
    path_style: flag().optional().meta({
      description:
        "Name the bucket in the path instead of the host: most stores other than AWS's need it. Default: true where an endpoint is given.",
    }),
  })
    .optional()
    .meta({
      description:
        'Object storage; goes with a path that begins with s3://. Default: as AWS tools are set up.',
    }),
  azure: section({
    endpoint: parsed(URL_PATTERN, URL_EXPECTED, parseUrl).optional().meta({
      description:
        'Address of Azure Blob storage, with the account where it is in the path: for emulators and other clouds. Default: https://<account>.blob.core.windows.net.',
    }),
  })
    .optional()
    .meta({
      description:
        'Azure Blob storage; goes with a path that begins with az://. Default: by AZURE_STORAGE_* variables.',
    }),
  partition_by: z
    .union(
      [
        choice('query', 'window', 'none').transform((value) => (value === 'none' ? [] : [value])),
        z.array(partitionBy),
      ],
      'query, window, none or a list such as [query, window]',
    )
    .prefault(['query', 'window'])
    .meta({ description: 'What gets separate folders.' }),
  shard_rows: integer(1).prefault(1_000_000).meta({
    description: 'Rows of one file; a file may pass it by less than a page.',
  }),
  compression: choice('none', 'snappy', 'gzip', 'zstd').optional().meta({
    description:
      'parquet: none, snappy, gzip or zstd (Node 22.15 or newer); csv: none or gzip. Default: snappy for parquet, none for csv.',
  }),
  table_formats: z
    .array(choice(...TABLE_FORMATS), 'a list of iceberg and delta')
    .prefault([])
    .meta({
      description:
        'Table formats that the data set has besides its files: iceberg, delta, or both. Only with parquet and its columnar engine.',
    }),
  table_location: parsed(LOCATION_PATTERN, LOCATION_EXPECTED, parseLocation).optional().meta({
    description: 'Address of load.path for readers of the Iceberg table. Default: load.path.',
  }),
  table_snapshots: integer(1, 1000).prefault(10).meta({
    description: 'How many snapshots of the Iceberg table are kept.',
  }),
  keep: parsed(AGE_PATTERN, AGE_EXPECTED, parseAge).optional().meta({
    description:
      'How old partitions may become before `prune` removes them: <n>d, <n>w, <n>mo or <n>y. A run removes nothing. Default: none; `prune` needs --older-than.',
  }),
  file_mode: text(
    /^(?:0o?)?[67][0-7]{2}$/,
    "an octal file mode such as '0600' or 0o640, which lets the owner read and write",
  )
    .prefault('0600')
    .meta({ description: 'Permissions of files; folders get x for each r.' }),
  csv: section({
    escape_formulas: flag().prefault(false).meta({
      description: "Put ' before values that a spreadsheet would read as formulas.",
    }),
  })
    .optional()
    .meta({ description: 'Settings for csv alone. Default: those of its keys.' }),
  parquet: section({
    encodings: choice('compact', 'plain').optional().meta({
      description:
        'compact (default): smaller encodings, which most readers support; plain: encodings that all readers support, in larger files.',
    }),
    bloom_filters: list(columnName, 'a list of column names').prefault([]).meta({
      description: 'Columns that get a bloom filter, such as identity_name and id.',
    }),
  })
    .optional()
    .meta({ description: 'Settings for parquet alone. Default: those of its keys.' }),
}).meta({ description: 'Format and location of the data set.' })

const state = section({
  path: text(/^[^\0]+$/, 'the path of a folder')
    .optional()
    .meta({
      description:
        'Local folder for _state (checkpoint, open shards, lock), relative to the working directory, where load.path is s3:// or az://. Default: _state in the bucket.',
    }),
}).meta({ description: 'Where the state of the export is kept.' })

const FILES_EXPECTED = 'the path of a pipeline file, or a list of them'

export const pipelineFile = section({
  // Removed when files are merged. Here for editors and for the list of known keys.
  extends: z
    .union([z.string(FILES_EXPECTED), z.array(z.string(FILES_EXPECTED))], FILES_EXPECTED)
    .optional()
    .meta({
      description:
        'Pipeline files whose settings apply unless this file has its own, relative to this file; later ones override. Default: none.',
    }),
  name: text(/^[a-z0-9-]{1,100}$/, 'up to 100 of a-z, 0-9 and -').meta({
    description: 'Names the pipeline and its checkpoint. Required.',
  }),
  service,
  extract,
  transform: transform.prefault({}),
  load: load.prefault({}),
  state: state.prefault({}),
})

/** The settings of a pipeline file, with simple defaults. */
export type PipelineFile = z.output<typeof pipelineFile>
