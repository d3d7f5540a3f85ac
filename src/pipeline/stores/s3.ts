import type * as z from 'zod'
import { key } from '../schema/key.ts'
import { flag, parsed, section, text } from '../schema/leaves.ts'
import { URL_ALONE } from '../values/addresses.ts'
import { onlyIn, type StoreWords } from './store-words.ts'

const keys = key(
  section({
    endpoint: key(
      parsed(...URL_ALONE).optional(),
      'Address of an S3-compatible store. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, ~/.aws, or AWS itself.',
    ),
    region: key(
      text(/^[a-z0-9-]{1,64}$/, 'a region such as eu-central-1').optional(),
      'Region of the bucket. Default: AWS_REGION or ~/.aws, or us-east-1 where there is an endpoint.',
    ),
    allow_http: key(
      flag().prefault(false),
      'Allow plain http to another machine: rows are then sent unencrypted.',
    ),
    path_style: key(
      flag().optional(),
      "Name the bucket in the path instead of the host: most stores other than AWS's need it. Default: true where an endpoint is given.",
    ),
  }).optional(),
  'Object storage; goes with a path that begins with s3://. Default: as AWS tools are set up.',
  onlyIn('s3'),
)

export const s3 = {
  scheme: 's3',
  pattern: /^s3:\/\/(?![^/]*\.\.)([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/,
  address: 's3://bucket/prefix',
  rule: 'a bucket of 3 to 63 of a-z, 0-9, - and .',
  section: keys,
  location(given: z.output<typeof keys>, bucket: string, prefix: string) {
    const { endpoint = null, region = null, path_style = null, allow_http = false } = given ?? {}
    return { kind: 's3', bucket, prefix, endpoint, region, pathStyle: path_style, allowHttp: allow_http }
  },
  environment: 'AWS_',
  secrets: ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  secretPart: null,
} as const satisfies StoreWords
