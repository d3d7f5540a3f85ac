/** XML of responses: elements and text. */
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
