"""Function words by language (ISO 639-1): they say which language a text is in and little else.

Own compact lists. Accents as written; matching folds them (`stop_words`).
"""

from __future__ import annotations

from functools import cache

from cofire.encoding.text import fold

WORDS: dict[str, str] = {
    "en": """a an the and or but if so of to in on at by for with from as into about than
        then that this these those there here it its he she his her him hers they them their
        theirs we us our ours you your yours i me my mine myself yourself himself herself
        themselves is am are was were be been being do does did doing done have has had
        having will would shall should can could may might must not no nor just also very too
        really let what which who whom whose when where why how all any both each few more
        most other some such only own same up down out off over under again further once
        because while during before after above below between through until against one get
        got getting hey hi yeah yep yes wow oh ok okay thanks thank lol haha well like""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder aber wenn weil
        dass ob als wie so ich du er sie es wir ihr mich dich sich uns euch mir dir ihm ihn
        ihnen mein dein sein unser euer meine deine seine ihre ist bin bist sind seid war
        waren wird werden wurde habe hast hat haben hatte hatten kann können konnte muss
        müssen soll will wollen nicht kein keine nein ja auch nur noch schon sehr mehr von zu
        zum zur in im an am auf aus bei beim mit nach über unter um für durch gegen ohne vor
        was wer wo wann warum welche dieser diese dieses da dort hier dann doch mal bitte
        danke hallo man""",
    "fr": """le la les l un une des du de d et ou mais si que qui quoi dont où quand comme
        comment pourquoi je tu il elle on nous vous ils elles me te se lui leur leurs mon ma
        mes ton ta tes son sa ses notre nos votre vos ce cet cette ces ça cela est suis es
        sommes êtes sont était étais étaient être été ai as a avons avez ont avait avoir pas
        ne n non oui plus très aussi même tout tous toute toutes dans en sur sous avec sans
        pour par chez à au aux y peut peux fait faire bien ici là donc alors merci bonjour j
        c s m t qu""",
    "es": """el la los las un una unos unas y e o u pero si que qué quién cuál cuándo cuánto
        dónde cómo porque por para con sin de del a al en sobre entre hasta desde yo tú él
        ella nosotros ellos ellas usted ustedes me te se nos os le les lo mi mis tu tus su
        sus nuestro nuestra este esta esto estos estas ese esa eso esos aquel es soy eres
        somos son era eran fue fueron ser sido está estoy estás están estaba estar he has ha
        hemos han había haber hay no sí más muy también ya todo todos toda como cuando donde
        gracias hola tengo tiene bien pues""",
    "it": """il lo la i gli le l un uno una e ed o ma se che chi cui quale quando quanto dove
        come perché di a da in con su per tra fra del della dello dei degli delle al alla
        allo ai agli alle dal dalla dai nel nella nei nelle sul sulla sui io tu lui lei noi
        voi loro mi ti si ci vi ne mio mia miei tuo tua suo sua suoi nostro questo questa
        questi queste quello quella è sono sei siamo siete era erano essere stato stata ho
        hai ha abbiamo avete hanno aveva avere non no sì più molto anche già tutto tutti poi
        qui grazie ciao""",
    "pt": """o a os as um uma uns umas e ou mas se que quem qual quando quanto onde como
        porque por para com sem de do da dos das em no na nos nas ao aos à às pelo pela num
        numa eu tu você vocês ele ela nós eles elas me te lhe lhes meu minha meus minhas teu
        seu sua seus suas nosso nossa este esta isto esse essa isso aquele aquela é sou és
        somos são era eram foi foram ser sido está estou estão estava estar tem tenho têm
        tinha ter há não sim mais muito também já tudo todos toda obrigado obrigada olá bem
        até""",
    "nl": """de het een en of maar als dat die dit deze wat wie waar wanneer waarom hoe welke
        ik jij je u hij zij ze we wij jullie mij me jou hem haar ons hun hen mijn jouw zijn
        onze uw is ben bent was waren wordt worden werd heb hebt heeft hebben had hadden kan
        kunnen kon moet moeten zal zullen zou wil niet geen nee ja ook nog al zo er dan toen
        hier daar van te in op aan uit bij met naar over onder om voor door tegen zonder na
        heel erg meer veel bedankt dank hallo gewoon""",
    "sv": """och det att i en jag hon som han på den med var sig för så till är men ett om
        hade de av icke mig du henne då sin nu har inte hans honom skulle hennes där min man
        ej vid kunde något från ut när efter upp vi dem vara vad över än dig kan sina här ha
        mot alla under någon eller allt mycket sedan ju denna detta er vem vilken varför hur
        också bara blir blev tack hej ja nej dina mina oss""",
    "da": """og i jeg det at en den til er som på de med han af for ikke der var mig sig men
        et har om vi min havde ham hun nu over da fra du ud sin dem os op man hans hvor eller
        hvad skal selv her alle vil blev kunne ind når være dog noget ville deres efter ned
        skulle denne end dette mit også under have dig anden hende mine meget sit vores hvis
        din nogle hvem hvorfor hvordan bliver jo ja nej tak hej""",
    "no": """og i jeg det at en et den til er som på de med han av for ikke ikkje der så var
        meg seg men ett har om vi min mitt ha hadde hun nå over da ved fra du ut sin dem oss
        opp man kan hans hvor eller hva skal selv sjøl her alle vil bli ble blei blitt kunne
        inn når være kom noen noe ville dere deres kun etter ned skulle denne deg si sine
        sitt mot å meget hvorfor dette disse uten hvordan hvem mye bare enn takk hei ja nei""",
    "fi": """ja on ei se hän minä sinä me te he olen olet olemme olette ovat oli olin olivat
        ollut olla että mutta tai jos kun kuin niin myös vain nyt sitten tämä tuo nämä mikä
        mitä kuka ketä missä mistä milloin miksi miten minun sinun hänen meidän minua sinua
        minulla sinulla hänellä minulle sen sitä siitä siinä joka jotka jota en et emme ette
        eivät kanssa ennen jälkeen kyllä hyvin vielä jo kaikki paljon koska siis kiitos hei
        moi tässä siellä""",
    "ru": """и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по
        только ее мне было вот от меня еще нет о из ему теперь когда даже ну вдруг ли если
        уже или ни быть был него до вас нибудь опять уж вам ведь там потом себя ничего ей
        может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз
        тоже себе под будет ж тогда кто этот того потому этого какой ним здесь этом почти мой
        тем чтобы нее были куда зачем всех при об хоть после над больше тот через эти нас про
        них какая много эту моя свою этой перед мои это очень спасибо привет""",
    "uk": """і й та в у на з із зі до що як це він вона воно вони ми ви ти я не але або якщо
        коли де хто чому який яка яке які від для за по про при під над без через після перед
        його її їх мене мені тебе тобі нас вас собі себе мій моя моє твій наш свій є був була
        було були буде бути вже ще так ні тут там тоді потім дуже тільки також щоб бо ж би чи
        дякую привіт""",
    "pl": """i w z na do nie że się to jest jak ale o od za po co tak czy już dla przez ja ty
        on ona ono my wy oni one mnie mi ciebie ci jego jej ich nas was mój moja moje twój
        swój ten ta te tego tej tym tych który która które kiedy gdzie kto dlaczego jestem
        jesteś są był była było byli być będzie mam masz ma mają miał może bardzo tylko też
        jeszcze jeśli lub albo oraz bo tu tam pod nad przed bez u ze we dziękuję cześć""",
    "cs": """a v na se je že to s z do o i k ve po ale za jako od pro když si by jsem jsi
        jsou byl byla bylo byli být bude já ty on ona my vy oni mě mi tě ti ho jeho její
        jejich nás vás můj moje tvůj svůj ten ta tento tato který která které co kdo kde kdy
        proč jak nebo jen už ještě také tak ne ano pod nad před bez u aby protože velmi
        děkuji ahoj""",
    "ro": """și în la de pe cu din pentru este sunt nu că să se o un una ce care cum când
        unde cine eu tu el ea noi voi ei ele mă te îl îmi îți lui meu mea mei tău ta său sa
        nostru acest această acesta aceea am ai are avem aveți au era erau fost fi mai foarte
        doar dar sau dacă ca prin după până fără mulțumesc bună da al ale lor""",
    "hu": """a az és hogy nem is egy ez azt meg de csak már még volt van vannak lesz ki mi te
        én ő ti ők engem téged őt minket neki nekem ha vagy mert mint mikor hol miért hogyan
        melyik aki ami amely itt ott akkor majd nagyon igen sem el fel le be után előtt alatt
        között minden köszönöm szia ezt azok ezek volna""",
    "tr": """ve bir bu da de için ile çok ne ama gibi daha o ben sen biz siz onlar beni seni
        onu bana sana ona benim senin onun bizim mi mı mu mü değil var yok olan olarak kadar
        sonra önce her şey şu ki en ya veya hem ise eğer neden nasıl nerede kim hangi zaman
        şimdi evet hayır teşekkürler merhaba oldu olduğu diye""",
    "id": """yang dan di ke dari untuk dengan pada ini itu adalah tidak akan saya aku kamu
        anda dia mereka kami kita juga sudah telah bisa dapat ada atau karena jika kalau
        seperti oleh dalam lebih sangat hanya masih apa siapa kapan mana mengapa bagaimana
        lagi saja bukan belum lalu sebagai terima kasih halo nya""",
    "ca": """el la els les un una uns unes i o però si que què qui quan on com perquè per de
        del dels a al als en amb sense jo tu ell ella nosaltres vosaltres ells em et es ens
        us li meu meva teu seu seva aquest aquesta això és sóc són era va van ser estat ha
        han he hi no més molt també ja tot tots gràcies hola aquí""",
    "el": """και το να τα η ο οι του της των τον την στο στη στην στον στα σε με για από που
        πως τι ποιος δεν μη θα είναι είμαι ήταν έχει έχω είχε αυτό αυτή αυτός εγώ εσύ μου σου
        μας σας τους αν ή αλλά όταν πού γιατί ένα ένας μια πολύ ναι όχι ευχαριστώ γεια""",
    "ar": """في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين و أو ثم لكن أن إن لا ما لم
        لن قد كان كانت يكون هو هي هم أنا أنت نحن كل بعض بين حتى إذا كيف متى أين لماذا ماذا هل
        نعم شكرا مرحبا يا عند غير أي بعد قبل""",
    "fa": """و در به از که این را با است برای آن یک خود تا کرد بر هم نیز شد بود من تو او ما
        شما آنها می های ها یا اما اگر چه چرا کجا کی چگونه نه بله هر همه بین پس باید دارد هست
        سلام ممنون""",
    "ur": """اور کے کی میں ہے کا سے کو نے پر یہ وہ ہیں کہ جو تھا تھی تھے ہم آپ تم اس ان ایک
        بھی نہیں ہو گا گی کیا کب کہاں کیوں کیسے شکریہ""",
    "he": """של את על לא זה אני הוא היא אתה הם אנחנו עם כל גם כי אם או אבל מה מי איך למה איפה
        מתי יש אין היה הייתה רק עוד כבר אז כן שלי שלך שלו לי לך לו תודה שלום""",
    "hi": """है हैं था थी थे हो का के की को से में पर और या ने यह वह ये वे मैं हम तुम आप मेरा
        मेरी मेरे उसका उसकी उसके इस उस इन उन एक कि जो तो भी ही नहीं न क्या कब कहाँ कौन क्यों
        कैसे लिए साथ बाद तक कर रहा रही रहे गया गई गए हुआ हुई बहुत अपने अपनी अपना धन्यवाद
        नमस्ते""",
    "mr": """आहे आहेत होता होती होते आणि किंवा पण मी तू तो ती ते आम्ही तुम्ही हा ही हे या
        त्या चा ची चे ने ला नाही काय कधी कुठे कोण का कसे माझा माझी खूप""",
    "ne": """छ छन् थियो र वा तर म तिमी ऊ उनी हामी यो त्यो को का की मा ले लाई बाट सँग छैन के
        कहिले कहाँ किन कसरी मेरो धेरै""",
    "zh": """的 了 是 我 你 他 她 它 们 在 和 与 就 都 也 很 不 这 那 着 吗 呢 吧 啊 之 而 及
        個 這 們 嗎""",
    "ja": """は が を に の と で も へ や か ね よ な て た し だ い る す ま う り れ ら さ
        っ ん""",
    "ko": """은 는 이 가 을 를 의 에 와 과 도 로 으로 만 에서 그 저 나 너 우리 것 수 등 및 또
        더 안 못 그리고 하지만 그런데 네 아니요 있다 없다 하다""",
}  # fmt: skip


@cache
def stop_words(language: str) -> frozenset[str]:
    """The folded function words of a language; empty where there is no list."""
    return frozenset(fold(word) for word in WORDS.get(language, "").split())
