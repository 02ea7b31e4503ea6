/**
 * Sets variables `OTEL_*` for what runs in `body`, without any others that the process was started with, and puts things
 * back afterwards.
 */
export async function withOtelEnvironment<T>(
  variables: Readonly<Record<string, string>>,
  body: () => Promise<T>,
): Promise<T> {
  const before = otelVariables();
  const replace = (by: Readonly<Record<string, string>>): void => {
    for (const name of Object.keys(otelVariables())) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, by);
  };
  replace(variables);
  try {
    return await body();
  } finally {
    replace(before);
  }
}

function otelVariables(): Record<string, string> {
  const found = Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_'));
  return Object.fromEntries(found) as Record<string, string>;
}
