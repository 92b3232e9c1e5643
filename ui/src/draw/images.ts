// What may be shown as an image.

/** Images come from the run: only those that carry their own bytes are shown, and only as images. */
export function safeImage(address: string | undefined): string | null {
  return address !== undefined && /^data:image\/(png|jpeg);base64,[A-Za-z0-9+/=]+$/.test(address) ? address : null;
}
