/** XML of requests and responses: elements and text; attributes are ignored. */
export class Xml {
  constructor(readonly text: string) {}
}

type Content = string | number | boolean | Xml | readonly Xml[]

export function element(name: string, content: Content): Xml {
  return new Xml(`<${name}>${inner(content)}</${name}>`)
}

/** Elements of a record, without the undefined ones. */
export function elements(fields: Readonly<Record<string, Content | undefined>>): Xml[] {
  return Object.entries(fields).flatMap(([name, content]) =>
    content === undefined ? [] : [element(name, content)],
  )
}

export function document(name: string, content: readonly Xml[], namespace = true): string {
  const attribute = namespace ? ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"' : ''
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${name}${attribute}>${inner(content)}</${name}>`
}

function inner(content: Content): string {
  if (content instanceof Xml) return content.text
  if (typeof content === 'object') return content.map((each) => each.text).join('')
  return String(content).replace(/[&<>"\r]/g, (character) => `&#${character.codePointAt(0)};`)
}

export type Node = { readonly name: string; readonly children: readonly Node[]; readonly text: string }

/** @throws Error when it is not well-formed */
export function parseXml(source: string): Node {
  type Open = { name: string; children: Node[]; text: string }
  const top: Open = { name: '', children: [], text: '' }
  const path: Open[] = [top]
  let end = 0
  for (const match of source.matchAll(/<(\?|\/?)([^\s<>/?]+)([^<>]*?)(\/?)>/g)) {
    const [whole, mark, name = '', , empty] = match
    path.at(-1)!.text += unescaped(source.slice(end, match.index))
    end = match.index + whole.length
    if (mark === '?') continue
    if (mark === '') path.push({ name, children: [], text: '' })
    if (mark === '/' || empty === '/') {
      const node = path.pop()!
      if (node.name !== name || path.length === 0) throw new Error(`</${name}> closes what is not open`)
      path.at(-1)!.children.push(node)
    }
  }
  const [root] = top.children
  if (path.length !== 1 || root === undefined || top.children.length !== 1) throw new Error('not one element')
  if (source.slice(end).trim() !== '') throw new Error('text after the end')
  return root
}

/** @returns the text of the first child of that name, or null */
export function textOf(node: Node, name: string): string | null {
  return node.children.find((child) => child.name === name)?.text ?? null
}

const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function unescaped(text: string): string {
  if (text.includes('<')) throw new Error('a stray <')
  return text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return NAMED[name] ?? whole
  })
}
