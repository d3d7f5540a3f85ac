import type * as z from 'zod'

/** A response other than success: becomes a status, headers and the error body of the service. */
export class ServiceError extends Error {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(`HTTP ${status}`)
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** Source: the public documentation: `{"error":{"code","message"}}`, `code` stable. */
export function serviceError(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): ServiceError {
  return new ServiceError(status, { error: { code, message } }, headers)
}

type ValidationDetail = { loc: (string | number)[]; msg: string; type: string }

/** Source: the public documentation: status 422 with `{"detail":[{"loc","msg","type"}]}`. */
export function validationError(detail: readonly ValidationDetail[]): ServiceError {
  return new ServiceError(422, { detail })
}

/**
 * Checks a request part against a schema. The details name paths and types only, never what was found
 * there: the value of a secret query must not come back in an error.
 * @param where first element of every `loc`: 'body', 'query' or 'path'
 * @throws ServiceError 422
 */
export function validate<T>(schema: z.ZodType<T>, input: unknown, where: 'body' | 'query' | 'path'): T {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw validationError(parsed.error.issues.flatMap((issue) => details(issue, input, where)))
}

/**
 * Parses a JSON body. The parser's own message is dropped, because it quotes the text.
 * @throws ServiceError 422
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw validationError([{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }])
  }
}

function details(issue: z.core.$ZodIssue, input: unknown, where: string): ValidationDetail[] {
  const loc = [where, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  switch (issue.code) {
    case 'invalid_type':
      return valueAt(input, issue.path) === undefined
        ? [{ loc, msg: 'Field required', type: 'missing' }]
        : [{ loc, msg: `Input should be a valid ${issue.expected}`, type: `${issue.expected}_type` }]
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        loc: [...loc, key],
        msg: 'Extra inputs are not permitted',
        type: 'extra_forbidden',
      }))
    case 'too_big':
      return [{ loc, msg: `Input should be at most ${issue.maximum}`, type: 'less_than_equal' }]
    case 'too_small':
      return [{ loc, msg: `Input should be at least ${issue.minimum}`, type: 'greater_than_equal' }]
    case 'invalid_value':
      return [{ loc, msg: `Input should be one of: ${issue.values.join(', ')}`, type: 'enum' }]
    default:
      // Messages of our own refinements; they are constants.
      return [{ loc, msg: issue.message, type: 'value_error' }]
  }
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value: unknown = input
  for (const part of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[part]
  return value
}
