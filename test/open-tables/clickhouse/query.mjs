import { readFileSync } from 'node:fs'
import { Session } from 'chdb'

// Statements come as a JSON array on stdin; the results of each, a JSON array of rows, are lines on stdout. All of them
// have one session, so that a table that one creates is there for the next; and for the next process, if a folder for the
// tables is given.
const [folder] = process.argv.slice(2)
const session = new Session(folder)
for (const statement of JSON.parse(readFileSync(0, 'utf8'))) {
  const rows = String(session.query(statement, 'JSONCompactEachRow')).trim()
  console.log(JSON.stringify(rows === '' ? [] : rows.split('\n').map((line) => JSON.parse(line))))
}
if (folder === undefined) session.cleanup()
