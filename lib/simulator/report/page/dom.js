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
