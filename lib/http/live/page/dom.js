/** An element with properties and children. A property with a hyphen, and `role`, is an attribute. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role' || name === 'scope') made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/** Touches the page only where something is different. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === undefined || value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows `items` as children of `parent`, in order; each keeps its node for as long as it has the same key. */
export function showList(parent, items, keyOf, make, update) {
  const known = (parent.nodesByKey ??= new Map());
  const wanted = new Set();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    wanted.add(key);
    let node = known.get(key);
    if (node === undefined) known.set(key, (node = make(item)));
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, item);
  }
  for (const [key, node] of known) {
    if (wanted.has(key)) continue;
    node.remove();
    known.delete(key);
  }
}
