/** Names of this machine for itself. */
export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;

/** Whether only programs of this machine reach what listens there. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address);
}

/** Whether a `Host` header, with or without its port, names one of `hosts`. */
export function isAddressedTo(header: string | undefined, hosts: ReadonlySet<string>): boolean {
  const name = /^(\[[\da-fA-F:.]+\]|[^:]*)(?::\d{1,5})?$/.exec(header ?? '')?.[1];
  return name !== undefined && hosts.has(name.toLowerCase());
}
