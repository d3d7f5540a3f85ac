/**
 * The settings of a pipeline file, for programs: the same keys, with strings where the file has strings. Written out,
 * so that users of the library do not need zod's types. A test compares it with the schema, which describes each key.
 */
export type PipelineSettings = {
  /** Files that the settings extend. Programs rarely use it. */
  extends?: string | string[] | undefined
  name: string
  service: {
    base_url: string
    allow_http?: boolean | undefined
    token_env?: string | undefined
    api_key_env?: string | undefined
    token_url?: string | undefined
    tenant_id?: number | undefined
    token_lifetime?: string | undefined
    token_test_url?: string | undefined
    organization?: string | undefined
    search_path?: string | undefined
    report_path?: string | undefined
    requests_per_second?: number | undefined
    basic_requests_per_second?: number | undefined
    timeout?: string | undefined
    retries?: number | undefined
    max_response_bytes?: string | number | undefined
  }
  extract: {
    resource?: 'credentials' | 'reports' | undefined
    domains?: string[] | undefined
    domains_file?: string | undefined
    queries?: QuerySetting[] | undefined
    ids?: number[] | undefined
    all?: boolean | undefined
    windows?:
      | {
          from: string
          until?: string | undefined
          every?: string | undefined
          per_chain?: number | 'all' | undefined
        }
      | undefined
    lag?: string | undefined
    order?: 'asc' | 'desc' | undefined
    page_size?: number | 'auto' | undefined
    include?: string[] | undefined
    concurrency?: number | undefined
    max_requests?: Limit
    monthly_searches?: Limit
    min_searches_remaining?: Limit
  }
  transform?:
    | {
        secret?: 'redact' | 'drop' | 'partial' | 'hmac' | 'plaintext' | undefined
        identity?: 'keep' | 'hmac' | 'drop' | undefined
        mask_key_env?: string | undefined
        columns?: string[] | undefined
        extra_columns?: (string | ExtraColumnSetting)[] | undefined
        on_invalid?: 'quarantine' | 'fail' | undefined
        max_quarantined?: string | number | undefined
      }
    | undefined
  load?:
    | {
        format?: 'parquet' | 'csv' | undefined
        engine?: 'columnar' | 'parquetjs-lite' | 'csv-stringify' | undefined
        path?: string | undefined
        s3?:
          | {
              endpoint?: string | undefined
              region?: string | undefined
              allow_http?: boolean | undefined
              path_style?: boolean | undefined
            }
          | undefined
        azure?: { endpoint?: string | undefined } | undefined
        partition_by?: 'query' | 'window' | 'none' | ('query' | 'window')[] | undefined
        shard_rows?: number | undefined
        compression?: 'none' | 'snappy' | 'gzip' | 'zstd' | undefined
        table_formats?: ('iceberg' | 'delta')[] | undefined
        table_location?: string | undefined
        table_snapshots?: number | undefined
        keep?: string | undefined
        file_mode?: string | undefined
        csv?: { escape_formulas?: boolean | undefined } | undefined
        parquet?:
          | { encodings?: 'compact' | 'plain' | undefined; bloom_filters?: string[] | undefined }
          | undefined
      }
    | undefined
  state?: { path?: string | undefined } | undefined
}

type Limit = number | 'none' | null | undefined

type QuerySetting =
  | { type: 'domain'; fqdn: string; as?: string | undefined }
  | { type: 'auth_domain'; fqdn: string; as?: string | undefined }
  | { type: 'email'; email: string; as?: string | undefined }
  | { type: 'keyword'; keyword: string; as?: string | undefined }
  | { type: 'secret'; secret_env: string; as?: string | undefined }

type ExtraColumnSetting = {
  name: string
  path: string
  type: 'string' | 'int64' | 'boolean' | 'timestamp' | 'json'
}
