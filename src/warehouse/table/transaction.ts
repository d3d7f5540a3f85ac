/** Carries work out in one transaction: all of it, or nothing. */
export async function transaction(
  run: (sql: string) => Promise<unknown>,
  work: () => Promise<void>,
): Promise<void> {
  await run('BEGIN')
  try {
    await work()
    await run('COMMIT')
  } catch (error) {
    // What a failed commit leaves is rolled back already.
    await run('ROLLBACK').catch(() => {})
    throw error
  }
}
