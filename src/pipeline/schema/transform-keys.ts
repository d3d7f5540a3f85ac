import * as z from 'zod'
import {
  EXTRA_TYPES,
  IDENTITY_POLICY_NAMES,
  INVALID_POLICIES,
  SECRET_POLICY_NAMES,
} from '../../core/index.ts'
import { KNOWN_EXTRAS } from '../../rows/index.ts'
import { key, onlyFor, onlyIf } from './key.ts'
import { choice, columnName, countOrShare, integer, list, section, text, variableName } from './leaves.ts'

const knownExtras = KNOWN_EXTRAS.map(({ name }) => name) as [string, ...string[]]
const extraColumn = z.union(
  [
    choice(...knownExtras),
    section({
      name: key(
        text(
          /^[a-z][a-z0-9_]{0,62}$/,
          'the name of a column (a-z, 0-9 and _, a letter first, at most 63 characters)',
        ),
        'Name of the column.',
      ),
      path: key(
        text(
          /^(?=.{1,200}$)[^.]+(?:\.[^.]+){0,15}$/,
          'the names of up to 16 members joined by dots, such as details.severity',
        ),
        'Path of the field: names of members from the credential on, joined by dots.',
      ),
      type: key(choice(...EXTRA_TYPES), 'Type of the field; json: any value, as compact JSON.'),
    }),
  ],
  `${knownExtras.join(' | ')}, or { name, path, type }`,
)

export const transform = section({
  secret: key(
    choice(...SECRET_POLICY_NAMES).prefault('redact'),
    'How leaked secrets are masked; plaintext also needs --allow-plaintext at each run.',
  ),
  identity: key(choice(...IDENTITY_POLICY_NAMES).prefault('keep'), 'How identities are masked.'),
  mask_key_env: key(
    variableName().prefault('SPILLWAY_MASK_KEY'),
    'Environment variable with the key of the hmac policies, 32 bytes or more.',
  ),
  columns: key(
    list(columnName(), 'a list of column names').min(1, 'at least one column').optional(),
    'Columns to export. Default: all.',
  ),
  extra_columns: key(
    list(extraColumn, 'a list of columns').optional(),
    'Columns after the others, in this order: fields of the public documentation by name, and fields that this version does not know. Default: none.',
    onlyFor(({ rows }) => rows === 'credentials'),
  ),
  secret_facts: key(
    section({
      policy: key(
        section({
          min_length: key(integer(1, 1024).prefault(12), 'The shortest password, in code points.'),
          classes: key(
            integer(1, 4).prefault(3),
            'How many of the four classes of characters it needs: upper, lower, digit, other.',
          ),
        }).prefault({}),
        'The policy of your directory, which secret_meets_policy tells of plain secrets.',
      ),
    }).optional(),
    'Adds the columns secret_kind (plain, digest or empty) and secret_meets_policy, which are known before a secret is masked. Default: none.',
    onlyFor(({ rows }) => rows === 'credentials'),
  ),
  on_invalid: key(
    choice(...INVALID_POLICIES).prefault('quarantine'),
    'What happens to items that break the schema.',
  ),
  max_quarantined: key(
    countOrShare().prefault('1%'),
    'Items of a partition that may be quarantined, as a count or a share (of at least 100 items); beyond it the partition fails.',
    onlyIf<string>(
      'transform.on_invalid',
      (found) => found === 'quarantine',
      () => 'goes with on_invalid: quarantine, not with fail',
    ),
  ),
})
