import { eachMember, elementStarts, isKey, skipSpace } from './valid-json.ts'

const ITEMS = 'items'
const WRITTEN = Buffer.from(ITEMS)

/**
 * Where the items of a response begin, in their order: for values that JSON.parse does not keep as they are.
 * @param body a valid response without its byte order mark
 */
export function itemStarts(body: Buffer): readonly number[] {
  let items = -1
  eachMember(body, skipSpace(body, 0), (key, keyEnd, value) => {
    if (isKey(body, key, keyEnd, ITEMS, WRITTEN)) items = value
  })
  return items < 0 ? [] : elementStarts(body, items)
}
