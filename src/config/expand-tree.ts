import { expand, retype } from './expand.ts'
import type { Problems } from './problems.ts'
import type { Environment } from './secrets.ts'
import { type Container, isContainer, type Path, type Tree } from './tree.ts'

/** Expands `${VAR}` in every text of the file, in place; what command line flags have set stays as it is. */
export function expandTree(tree: Tree, env: Environment, problems: Problems): void {
  const visit = (container: Container, path: Path): void => {
    for (const [key, place] of tree.places.get(container) ?? []) {
      const value = Reflect.get(container, key)
      const inner = [...path, key]
      if (isContainer(value)) visit(value, inner)
      if (typeof value !== 'string' || place.from === 'flag' || !value.includes('${')) continue
      const expanded = expand(value, env)
      for (const problem of expanded.problems) problems.add(inner, problem)
      Reflect.set(container, key, expanded.text)
      const retyped = place.plain && expanded.whole ? retype(expanded.text) : undefined
      tree.places.get(container)?.set(key, {
        ...place,
        variables: expanded.variables,
        ...(retyped === undefined ? {} : { retyped }),
      })
    }
  }
  if (isContainer(tree.root)) visit(tree.root, [])
}
