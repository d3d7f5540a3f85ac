import { expect, it } from 'vitest'
import { azureError } from '../../src/azure/azure-error.ts'
import { s3Error } from '../../src/s3/s3-error.ts'

/** An error as the SDKs make it. */
const failure = (status: number | null, name = 'Error') =>
  Object.assign(new Error('as the SDK says it'), {
    name,
    ...(status === null ? {} : { statusCode: status, $metadata: { httpStatusCode: status } }),
  })

it.each([
  [429, 'The store is busy (429'],
  [503, 'The store is busy (503'],
  [500, 'The store fails (500'],
  [418, 'The store refuses (418'],
])('status %i means the same in both stores', (status, what) => {
  for (const error of [azureError(failure(status), 'x'), s3Error(failure(status), 'x')])
    expect(error).toMatchObject({ kind: 'storage', what: expect.stringContaining(what), where: 'x' })
})

it('a request that an SDK has cancelled is named by its cause, a limit of time', () => {
  for (const error of [
    azureError(failure(null, 'AbortError'), 'x'),
    s3Error(failure(null, 'AbortError'), 'x'),
  ]) {
    const what = 'The store cannot be reached (no response in time)'
    expect(error).toMatchObject({ kind: 'storage', what })
    expect((error as Error).message).not.toContain('AbortError')
  }
})
