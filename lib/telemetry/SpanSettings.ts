import type { ContentSettings } from './contentAttributes.ts';
import type { ProviderOption } from './providerOf.ts';

/** What the spans of all calls of an observer go by. */
export interface SpanSettings extends ContentSettings {
  readonly provider: ProviderOption | undefined;
  /** `undefined`: as the policy says. */
  readonly captureContent: boolean | undefined;
}
